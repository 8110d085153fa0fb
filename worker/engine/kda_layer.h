// A Kimi Delta Attention layer on one rank: its heads, where the parts of its recurrent state lie, and its
// weights. Heads are sharded over tensor ranks; the state is never sharded over context.
//
// Formulas: Kimi Linear (arXiv 2510.26692) and its published modelling code; launch_recurrent.h says them.
#ifndef KVASIR_WORKER_ENGINE_KDA_LAYER_H_
#define KVASIR_WORKER_ENGINE_KDA_LAYER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/geometry/block_address.h"
#include "common/geometry/dtype.h"
#include "common/models/mixer_shapes.h"
#include "common/plan/plan.h"
#include "worker/engine/pass.h"
#include "worker/engine/weight_set.h"

namespace kvasir {

struct KdaWeights {
  const float* q = nullptr;          // [heads * dim, hidden]
  const float* k = nullptr;          // as q
  const float* v = nullptr;          // as q
  const float* q_conv = nullptr;     // [heads * dim, kernel]
  const float* k_conv = nullptr;     // as q_conv
  const float* v_conv = nullptr;     // as q_conv
  const float* f_down = nullptr;     // [dim, hidden], of the decay
  const float* f_up = nullptr;       // [heads * dim, dim]
  const float* a_log = nullptr;      // [heads]
  const float* dt_bias = nullptr;    // [heads, dim]
  const float* beta = nullptr;       // [heads, hidden]
  const float* gate_down = nullptr;  // [dim, hidden], of the output gate; null where it has full rank
  const float* gate_up = nullptr;    // [heads * dim, dim or hidden]
  const float* out_norm = nullptr;   // [dim]
  const float* out = nullptr;        // [hidden, heads * dim]
};

struct KdaLayer {
  KdaShape shape = {};
  std::int64_t heads = 0;     // of this rank
  std::int64_t history = 0;   // tokens whose inputs of the convolutions are kept
  DType dtype = DType::kF32;  // of what is kept between rows beside the state
  StateGeometry conv = {};
  StateGeometry state = {};
  bool has_ring = false;  // rolls back by replay
  StateGeometry ring_decay = {};
  StateGeometry ring_beta = {};
  KdaWeights weights = {};
  [[nodiscard]] std::int64_t width() const { return heads * shape.head_dim; }
};

// The layer's place in the arena. InvalidArgument where the heads do not divide over the ranks, or the plan's
// tensors are not those of the model: states "conv" and "recurrent", under replay the ring "decay" and
// "beta".
absl::StatusOr<KdaLayer> MakeKdaLayer(const Plan& plan, const PlanPool& pool, const PlanLayer& planned,
                                      const KdaShape& shape);

// Declares the weights of one rank; `prefix` ends in the layer's number and a dot.
void DeclareKdaWeights(const std::string& prefix, const RankPlace& place, std::int64_t hidden,
                       WeightSet& weights, KdaLayer* layer);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_KDA_LAYER_H_
