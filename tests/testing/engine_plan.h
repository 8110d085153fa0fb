// Small models and hand-made plans for tests of the engine, without the planner: a target of MLA layers, or
// one with KDA layers around an MLA layer, and a DSpark draft of the same cache layout. Every plan passes
// VerifyPlan.
#ifndef KVASIR_TESTS_TESTING_ENGINE_PLAN_H_
#define KVASIR_TESTS_TESTING_ENGINE_PLAN_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "tests/testing/engine_models.h"

namespace kvasir::testing {

struct EnginePlanOptions {
  Topology topology = {};
  std::int64_t draft_tokens = 3;  // N; 0: no draft
  std::int64_t block_tokens = 4;
  std::int64_t blocks_per_parent = 3;
  std::int64_t parents = 80;
  std::int64_t max_requests = 4;
  std::int64_t prefill_chunk = 8;
  std::int64_t context_tokens = 96;
  DType dtype = DType::kBf16;
  bool one_pool = true;      // target and draft group in one pool; else a pool for each
  bool draft_first = false;  // the draft's group has the lower id
  bool hybrid = false;       // HybridTarget; its states have a pool
  StateRollback rollback = StateRollback::kSnapshots;  // of a hybrid target with a draft
  std::int64_t parts = 1;                              // 1 or 3: of a hybrid target's state
  bool experts = false;                                // layers mix experts
  bool dflash = false;                                 // SmallDflash drafts; with dcp > 1 replicated only
  MarkovHead markov_head = MarkovHead::kVanilla;       // of the draft of a target that is not hybrid
  bool mtp = false;                                    // MtpOf drafts
  bool draft_replicated = false;                       // over context; the draft then has its own pool
};
// "tp4_dcp2_i1_n3_b4": usable as a test name.
[[nodiscard]] std::string NameOf(const EnginePlanOptions& options);
void PrintTo(const EnginePlanOptions& options, std::ostream* out);

[[nodiscard]] Plan MakeEnginePlan(const EnginePlanOptions& options);

// A pool of one parent layout for tests of pools and scheduling, where no model runs: one layer whose page is
// `stride_bytes` or less. `lifetime` decides rows and groups.
struct PoolSketch {
  std::string name = "tokens";
  LifetimeKey lifetime = {};
  std::int64_t block_tokens = 4;  // token pools
  std::int64_t parts = 1;         // per_sequence pools
  std::int64_t blocks_per_parent = 4;
};
// One group of the target per pool, no draft, parents of a size that every blocks_per_parent divides.
[[nodiscard]] Plan MakePoolPlan(const std::vector<PoolSketch>& pools, std::int64_t parents,
                                std::int64_t max_requests, std::int64_t context_tokens);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_ENGINE_PLAN_H_
