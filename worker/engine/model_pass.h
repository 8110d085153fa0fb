// Writes the passes of a target and its DSpark draft as launch lists. The only place that knows a
// transformer.
//
// Target layer: x += mixer(norm(x)); x += mlp(norm(x)). KDA layers as launch_recurrent.h says them. MLA in
// absorbed form (mla_decode docs in launch.h); heads and MLP columns are sharded over tensor ranks, outputs
// summed by AllReduceOp. With dcp > 1 queries are gathered over the DCP group, each rank attends to its own
// tokens for all of the group's heads, and CombineOp keeps its own. Draft (DSpark): context rows are K/V
// only: norm(W_c * concat(taps)); block rows are [anchor, mask x (N-1)].
#ifndef KVASIR_WORKER_ENGINE_MODEL_PASS_H_
#define KVASIR_WORKER_ENGINE_MODEL_PASS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "worker/engine/backend.h"
#include "worker/engine/pass.h"
#include "worker/engine/weight_source.h"

namespace kvasir {

// A model's weights of one rank in device memory, and the scratch its passes use.
class RankModel {
 public:
  virtual ~RankModel() = default;
  // Scratch is sized for the largest shape given to Create.
  [[nodiscard]] virtual LaunchList Build(const PassShape& shape, const PassInputs& in,
                                         const PassOutputs& out) const = 0;
  [[nodiscard]] virtual Bytes weight_bytes() const = 0;
  [[nodiscard]] virtual Bytes scratch_bytes() const = 0;
};

struct RankModelOptions {
  const Plan* plan = nullptr;  // outlives Create only
  RankPlace place;
  const ModelDescription* target = nullptr;
  const ModelDescription* draft = nullptr;  // null without a draft
  std::int64_t weight_seed = 0;             // synthetic weights (synthetic_weights.h)
  const WeightSource* weights = nullptr;    // outlives Create only; null: synthetic, of weight_seed
  std::int64_t rows_max = 0;                // largest rows() of any pass
  std::byte* arena = nullptr;               // base address of the rank's arena
};

// Target and draft together: the draft uses the target's embedding and head where it ships none.
// Unimplemented (message starts with BACKEND_UNSUPPORTED_GROUP and names the group) for attention other than
// MLA, for recurrent layers other than KDA or of a draft, and for MLPs that mlp_weights.h cannot compute.
// ResourceExhausted for weights beyond all counting. The weight source's errors.
absl::StatusOr<std::unique_ptr<RankModel>> MakeRankModel(Backend& backend, const RankModelOptions& options);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_MODEL_PASS_H_
