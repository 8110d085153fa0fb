// A rank's view of a layer with keys and values per head (grouped-query attention, as Qwen3's): its sizes,
// its place in the arena and its weights.
#ifndef KVASIR_WORKER_ENGINE_GQA_LAYER_H_
#define KVASIR_WORKER_ENGINE_GQA_LAYER_H_

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

struct GqaWeights {
  const float* q = nullptr;            // [heads * dim, hidden]
  const float* k = nullptr;            // [kv_heads * dim, hidden]
  const float* v = nullptr;            // [kv_heads * value, hidden]
  const float* q_norm = nullptr;       // [dim], of each head
  const float* k_norm = nullptr;       // [dim], of each head
  const float* out = nullptr;          // [hidden, heads * value]
  const float* frequencies = nullptr;  // [dim / 2], of the rotation
};

// Heads h * (heads / kv_heads) .. of this rank read kv head h. A row of the cache is the keys of all kv
// heads, then their values. The cache is not sharded over context.
struct GqaLayer {
  AttentionShape shape = {};
  std::int64_t heads = 0;     // of this rank
  std::int64_t kv_heads = 0;  // of this rank; where there are fewer than ranks, several ranks hold one
  PageGeometry page = {};
  DType dtype = DType::kBf16;
  float scale = 0;  // of the softmax
  GqaWeights weights = {};
  [[nodiscard]] std::int64_t key_width() const { return kv_heads * shape.head_dim; }
  [[nodiscard]] std::int64_t row_dim() const { return key_width() + kv_heads * shape.value_dim; }
};

// InvalidArgument where heads and ranks do not divide, or the plan's rows are not the model's; Unimplemented
// naming what this worker does not compute (windows, chunks, sinks, gates, shared or sharded caches).
absl::StatusOr<GqaLayer> MakeGqaLayer(const Plan& plan, const PlanPool& pool, const PlanLayer& planned,
                                      const AttentionShape& shape);

// Declares the weights of one rank; `prefix` ends in the layer's number and a dot.
void DeclareGqaWeights(const std::string& prefix, const RankPlace& place, std::int64_t hidden,
                       WeightSet& weights, GqaLayer* layer);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_GQA_LAYER_H_
