// The plan as an artefact: what the planner makes, what its text says, what a worker executes. Plain values;
// every field is exact. Estimates and explanations are not here (planner/core/report.h), so they never change
// a plan_id.
//
// All ranks of a plan have the same arena, cut the same way: tensor parallelism divides heads evenly and
// context parallelism divides tokens, so one description holds for each rank. A plan knows ranks, never
// hosts.
#ifndef KVASIR_COMMON_PLAN_PLAN_H_
#define KVASIR_COMMON_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/plan/keys.h"

namespace kvasir {

// Rank r has tp_rank r and dcp_rank r mod dcp: a DCP group is `dcp` consecutive ranks.
struct Topology {
  std::int64_t tp = 1;
  std::int64_t dcp = 1;         // divides tp
  std::int64_t interleave = 1;  // tokens; divides every sharded pool's block_tokens
  friend bool operator==(const Topology&, const Topology&) = default;
};

enum class Pass : std::int8_t { kTargetPrefill, kTargetDecode, kTargetVerify, kDraftContext, kDraftBlock };
// target_prefill | target_decode | target_verify | draft_context | draft_block
[[nodiscard]] std::string_view PassName(Pass pass);

enum class StateRollback : std::int8_t { kNone, kSnapshots, kReplay };
// none | snapshots | replay
[[nodiscard]] std::string_view StateRollbackName(StateRollback rollback);

// Which model a role runs: the digest (SHA-256 hex) of its canonical description (common/models).
struct ModelRef {
  std::string name;
  std::string digest;
  friend bool operator==(const ModelRef&, const ModelRef&) = default;
};

struct PlanLayer {
  LayerId id;
  std::string name;  // for people: "layers.3"
  LayoutKey layout;
  std::int64_t part = 0;          // which of the pool's `parts` blocks of a sequence's state holds it; else 0
  std::int64_t offset_bytes = 0;  // of its page inside the block
  std::int64_t page_bytes = 0;    // block_tokens rows; or one state and, with replay, its ring
};

// Layers of a pool that share behaviour, and so metadata.
struct PlanGroup {
  GroupId id;        // dense, in plan order
  std::string name;  // "target.mla"
  BehaviourKey behaviour;
  std::vector<PlanLayer> layers;  // by LayerId
};

// Layers that share lifetime, blocks and one block table.
struct PlanPool {
  PoolId id;         // dense, in plan order
  std::string name;  // "tokens", "window.4096", "state"
  LifetimeKey lifetime;
  bool sharded = false;
  std::int64_t block_tokens = 0;       // rows per page on this rank; 0 for per_sequence
  std::int64_t parts = 1;              // blocks that one copy of a sequence's state takes; 1 for token pools
  std::int64_t block_bytes = 0;        // what the pages need
  std::int64_t stride_bytes = 0;       // from block to block; >= block_bytes
  std::int64_t blocks_per_parent = 0;  // blocks_per_parent * stride_bytes == parent_bytes
  std::vector<PlanGroup> groups;
};

// A graph to capture: `bucket` requests of `query_rows` rows each, over these groups in this order.
struct PlanGraph {
  Pass pass = Pass::kTargetDecode;
  std::int64_t query_rows = 1;
  std::int64_t bucket = 1;
  std::vector<GroupId> groups;
  friend bool operator==(const PlanGraph&, const PlanGraph&) = default;
};

struct OwnedBytes {
  std::string
      owner;  // "payload.target.mla", "padding.tokens", "slack.state", "null_parent", "unassigned", ...
  Bytes bytes;
  friend bool operator==(const OwnedBytes&, const OwnedBytes&) = default;
};

struct Plan {
  std::string ruleset;  // "native/1"
  Topology topology;
  ModelRef target;
  ModelRef draft;                 // empty without a draft
  std::int64_t draft_tokens = 0;  // N
  StateRollback rollback = StateRollback::kNone;
  std::int64_t context_tokens = 0;  // longest sequence, prompt and output together
  std::int64_t max_requests = 0;    // in one batch; the largest bucket
  std::int64_t prefill_chunk = 0;   // tokens
  Bytes arena_bytes;                // per rank: parents * parent_bytes, plus `unassigned`
  Bytes parent_bytes;
  std::int64_t parents = 0;             // parent 0 is the null parent
  std::vector<PlanPool> pools;          // by PoolId
  std::vector<PlanGraph> graphs;        // by (pass, query_rows, bucket)
  std::vector<OwnedBytes> attribution;  // by owner; sums to arena_bytes
};

// The groups of all pools, by GroupId.
[[nodiscard]] std::vector<const PlanGroup*> GroupsOf(const Plan& plan);
// Rows of a draft_block: N (DSpark: row k predicts the token after position T + k), or N + 1 (DFlash: row k
// the token at T + k, and the anchor's row nothing). 0 without a draft.
[[nodiscard]] std::int64_t DraftBlockRows(const Plan& plan);

}  // namespace kvasir

#endif  // KVASIR_COMMON_PLAN_PLAN_H_
