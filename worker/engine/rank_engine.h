// One rank of a deployment: arena, weights, graphs, and the execution of StepPlans. Every rank of every
// worker runs this same class; rank 0's worker also has the Scheduler (scheduler.h).
#ifndef KVASIR_WORKER_ENGINE_RANK_ENGINE_H_
#define KVASIR_WORKER_ENGINE_RANK_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "worker/engine/backend.h"
#include "worker/engine/communicator.h"
#include "worker/engine/pass.h"
#include "worker/engine/step_metadata.h"
#include "worker/engine/step_plan.h"
#include "worker/engine/weight_source.h"

namespace kvasir {

struct RankEngineOptions {
  Plan plan;  // verified
  std::string plan_id;
  Epoch epoch;
  RankPlace place;
  ModelDescription target;
  std::optional<ModelDescription> draft;
  std::int64_t weight_seed = 0;
  const WeightSource* weights = nullptr;  // outlives Create only; null: synthetic, of weight_seed
  bool use_graphs = true;                 // false: every pass runs eagerly (tests compare both)
  // All tensor ranks, for the agreement at the end of a step; null for a plan of one rank. Outlives the
  // engine.
  Communicator* communicator = nullptr;
  // The context group, where dcp > 1: a rank that breaks aborts both, so that no peer waits in either.
  // Outlives the engine.
  Communicator* context_communicator = nullptr;
  // Tests only: replaces the drafted tokens [requests, N] of a speculative step before they are verified.
  // They must not depend on chance.
  std::function<void(const StepPlan&, std::span<std::int32_t>)> draft_override;
  // Tests and preflight only: sees the metadata and the logits [rows, vocab] of every pass after it ran; the
  // logits are empty for draft_context, which has none.
  std::function<void(const PassMetadata&, std::span<const float>)> observe_pass;
  // Tests only: sees the confidences [requests, block rows] of every draft_block, if the draft has such a
  // head.
  std::function<void(std::span<const float>)> observe_confidences = {};
  // Tests only: stands in block-table columns that no row may look at.
  std::int64_t unused_table_entry = 0;
};

// Whether the plan's draft drafts one token after the other.
[[nodiscard]] inline bool IsChain(const RankEngineOptions& options) {
  return options.draft.has_value() && options.draft->draft.has_value() && options.draft->draft->IsChain();
}

// What Create measured, to be compared with the plan.
struct RankMeasurement {
  Bytes arena_bytes;
  Bytes weight_bytes;
  Bytes scratch_bytes;
  std::int64_t graphs = 0;
};

class RankEngine {
 public:
  // Allocates the arena exactly as planned, makes weights, captures every graph of the plan.
  static absl::StatusOr<std::unique_ptr<RankEngine>> Create(Backend& backend, RankEngineOptions options);
  virtual ~RankEngine() = default;

  // Executes one step.
  //   FailedPrecondition  another epoch or plan, or a step number that is not the next; or the engine is
  //   broken InvalidArgument     a block, length, token or slot that the plan does not allow, before anything
  //   runs
  // Both leave everything as it was: the right step may still come. Once a step runs, its number is used up:
  //   DataLoss            an operation met NaN or +inf on some rank ("rank r: NON_FINITE: ..."); all ranks
  //   return
  //                       the same status, the step's sequences are worthless, the engine and the
  //                       communicator stay usable
  //   anything else       the backend or a collective failed; the communicator is aborted, so that the peers
  //   fail
  //                       soon too, and the engine is broken for good
  virtual absl::StatusOr<StepOutcome> Execute(const StepPlan& step) = 0;

  [[nodiscard]] virtual RankMeasurement measurement() const = 0;
  // The arena, for tests and preflight.
  [[nodiscard]] virtual std::span<std::byte> arena() const = 0;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_RANK_ENGINE_H_
