#include "worker/engine/gqa_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

absl::Status Mismatch(const char* field, std::string message) {
  return FieldError(reason::kConflictingFields, field, std::move(message));
}

// Empty, or what the pass here does not compute.
std::string Unsupported(const PlanLayer& planned, const AttentionShape& shape) {
  if (planned.layout.sharded) return "keys and values that are sharded over context";
  if (shape.window != 0 || shape.chunk != 0) return "a window or chunks";
  if (shape.sinks || shape.sink_tokens != 0) return "sinks";
  if (shape.output_gate) return "an output gate";
  if (shape.shares_with.has_value()) return "another layer's cache";
  return "";
}

}  // namespace

absl::StatusOr<GqaLayer> MakeGqaLayer(const Plan& plan, const PlanPool& pool, const PlanLayer& planned,
                                      const AttentionShape& shape) {
  if (const std::string what = Unsupported(planned, shape); !what.empty()) {
    return absl::UnimplementedError(absl::StrFormat("layer %s has %s", planned.name, what));
  }
  const std::int64_t tp = plan.topology.tp;
  const bool divides = shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0 && shape.heads % tp == 0 &&
                       (shape.kv_heads % tp == 0 || tp % shape.kv_heads == 0);
  if (!divides) {
    return Mismatch("plan.topology.tp",
                    absl::StrFormat("%d tensor ranks do not divide the %d heads over %d kv heads of layer %s",
                                    tp, shape.heads, shape.kv_heads, planned.name));
  }
  GqaLayer layer{.shape = shape,
                 .heads = shape.heads / tp,
                 .kv_heads = std::max<std::int64_t>(shape.kv_heads / tp, 1),
                 .dtype = planned.layout.dtype};
  const LayoutKey& layout = planned.layout;
  if (layout.heads != layer.kv_heads || layout.key_dim != shape.head_dim ||
      layout.value_dim != shape.value_dim) {
    return Mismatch(
        "plan.pools.groups.layers.layout",
        absl::StrFormat("layer %s: the plan's rows have %d heads of %d + %d elements, the model's "
                        "%d of %d + %d; plan with this model description",
                        planned.name, layout.heads, layout.key_dim, layout.value_dim, layer.kv_heads,
                        shape.head_dim, shape.value_dim));
  }
  layer.page = {.stride_bytes = pool.stride_bytes,
                .layer_offset_bytes = planned.offset_bytes,
                .block_tokens = pool.block_tokens,
                .row_bytes = layer.row_dim() * DTypeBytes(layout.dtype)};
  layer.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  return layer;
}

void DeclareGqaWeights(const std::string& prefix, const RankPlace& place, std::int64_t hidden,
                       WeightSet& weights, GqaLayer* layer) {
  const AttentionShape& shape = layer->shape;
  const std::int64_t tp = place.topology.tp;
  // Ranks that share a kv head are neighbours.
  const std::int64_t kv_shards = std::min(tp, shape.kv_heads);
  const std::int64_t kv_shard = place.rank * kv_shards / tp;
  GqaWeights& out = layer->weights;
  weights.AddRows(MatrixSpec(prefix + "q", shape.heads * shape.head_dim, hidden), place.rank, tp, &out.q);
  weights.AddRows(MatrixSpec(prefix + "k", shape.kv_heads * shape.head_dim, hidden), kv_shard, kv_shards,
                  &out.k);
  weights.AddRows(MatrixSpec(prefix + "v", shape.kv_heads * shape.value_dim, hidden), kv_shard, kv_shards,
                  &out.v);
  weights.AddWhole(NormSpec(prefix + "q_norm", shape.head_dim), &out.q_norm);
  weights.AddWhole(NormSpec(prefix + "k_norm", shape.head_dim), &out.k_norm);
  const WeightSpec project = MatrixSpec(prefix + "out", hidden, shape.heads * shape.value_dim);
  weights.Add(project, ColumnShard(project, place.rank, tp), &out.out);
}

}  // namespace kvasir
