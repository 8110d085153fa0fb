// Everything a plan depends on, as plain values; the lists may come in any order. A request holds facts,
// never wishes of the planner: device and backend facts are fields, so that equal requests give equal plans
// anywhere.
#ifndef KVASIR_PLANNER_CORE_PLAN_REQUEST_H_
#define KVASIR_PLANNER_CORE_PLAN_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/geometry/dtype.h"
#include "common/plan/keys.h"
#include "common/plan/plan.h"
#include "planner/core/layer_spec.h"
#include "planner/core/refusal.h"

namespace kvasir {

// Up to `heads_max` query heads (0: any number) a kernel works on tiles of `tile` heads: it takes at most one
// tile, or whole tiles.
struct HeadTile {
  std::int64_t heads_max = 0;
  std::int64_t tile = 1;
  friend bool operator==(const HeadTile&, const HeadTile&) = default;
};

// What a kernel family can do. "Multi-token" is a pass of more than one query row per sequence.
struct BackendFacts {
  std::string name;                       // what BehaviourKey::backend refers to
  std::vector<LayoutKind> layouts;        // it reads
  std::vector<DType> cache_dtypes;        // of per-token rows; ignored for kState
  std::vector<std::int64_t> page_tokens;  // page sizes its kernels declare; empty for recurrent backends
  bool causal_multi_token = false;
  bool non_causal_multi_token = false;
  bool causal_multi_token_dcp = false;  // the same while the cache is sharded over context
  bool non_causal_multi_token_dcp = false;
  bool lse = false;                       // returns the log-sum-exp that partial results are combined with
  bool graphs = false;                    // its launches can be captured
  std::int64_t heads_max = 0;             // query heads of one call; 0: any number
  std::vector<HeadTile> head_tiles = {};  // the first that covers a number of heads decides; empty: no tiles
  std::int64_t block_rows_max = 0;        // rows of a multi-token pass; 0: any number
  friend bool operator==(const BackendFacts&, const BackendFacts&) = default;
};

struct TargetFacts {
  ModelRef ref;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t layers = 0;          // of the model, with or without a cache
  std::int64_t context_tokens = 0;  // the longest sequence the model claims
  friend bool operator==(const TargetFacts&, const TargetFacts&) = default;
};

struct DraftFacts {
  ModelRef ref;
  std::int64_t target_hidden = 0;  // of the target it was trained for
  std::int64_t target_layers = 0;  // 0: not said
  std::int64_t vocab = 0;
  std::int64_t draft_tokens_max = 0;      // the block it was trained with; 0: not said
  std::vector<std::int64_t> target_taps;  // target layers whose outputs it reads
  friend bool operator==(const DraftFacts&, const DraftFacts&) = default;
};

struct RankMemory {
  Rank rank;
  Bytes kv_memory;  // what the rank can give to caches; the arena is the least over the ranks
  friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

// kAuto: whichever admits more sequences of `context_tokens`; without recurrent state or without a draft
// there is nothing to roll back and the plan says `none` whatever was chosen.
enum class RollbackChoice : std::int8_t { kAuto, kNone, kSnapshots, kReplay };

struct PlanRequest {
  std::string ruleset = "native";
  TargetFacts target;
  std::optional<DraftFacts> draft;
  std::vector<LayerSpec> layers;       // target and draft
  std::vector<BackendFacts> backends;  // at least those that layers name
  Topology topology;
  std::vector<RankMemory> ranks;  // one entry for each of topology.tp ranks
  std::int64_t draft_tokens = 0;  // N
  RollbackChoice rollback = RollbackChoice::kAuto;
  std::int64_t context_tokens = 0;
  std::int64_t max_requests = 16;  // in one batch
  std::int64_t min_requests = 1;   // sequences of context_tokens that must be admitted for the request to fit
  std::int64_t prefill_chunk = 2048;  // tokens; at most the context counts
  // Context lengths of the report's capacity table; empty: 8192, 32768, 131072 and context_tokens. Never part
  // of the plan.
  std::vector<std::int64_t> capacity_contexts;
  // Found by the front end while it built the layers (heads that tensor parallelism does not divide, a cache
  // dtype it does not know). The pipeline reports them together with its own.
  std::vector<Refusal> early_refusals;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_PLAN_REQUEST_H_
