#include "worker/engine/kda_layer.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

absl::Status Mismatch(const char* field, std::string message) {
  return FieldError(reason::kConflictingFields, field, std::move(message));
}

// The plan's tensor `index` of a list must be this one.
absl::Status CheckTensor(const PlanLayer& planned, const char* list, const std::vector<StateTensor>& tensors,
                         std::size_t index, const StateTensor& want) {
  const StateTensor none;
  const StateTensor& have = index < tensors.size() ? tensors[index] : none;
  if (have == want) return absl::OkStatus();
  return Mismatch("plan.pools.groups.layers.layout",
                  absl::StrFormat("layer %s: tensor %d of its %s is '%s' with %d elements of %s, the model's "
                                  "is '%s' with %d of %s; plan with this model description",
                                  planned.name, index, list, have.name, have.elements, DTypeName(have.dtype),
                                  want.name, want.elements, DTypeName(want.dtype)));
}

absl::Status CheckCount(const PlanLayer& planned, const char* list, std::size_t count, std::size_t want) {
  if (count == want) return absl::OkStatus();
  return Mismatch("plan.pools.groups.layers.layout",
                  absl::StrFormat("layer %s: its %s has %d tensors, a KDA layer's has %d", planned.name, list,
                                  count, want));
}

absl::Status CheckDType(const PlanLayer& planned, DType dtype) {
  if (dtype == DType::kBf16 || dtype == DType::kF32) return absl::OkStatus();
  return Mismatch("plan.pools.groups.layers.layout",
                  absl::StrFormat("layer %s: 'conv' has %s elements, this worker keeps bf16 or f32",
                                  planned.name, DTypeName(dtype)));
}

}  // namespace

absl::StatusOr<KdaLayer> MakeKdaLayer(const Plan& plan, const PlanPool& pool, const PlanLayer& planned,
                                      const KdaShape& shape) {
  const std::int64_t tp = plan.topology.tp;
  if (shape.heads % tp != 0) {
    return Mismatch("plan.topology.tp",
                    absl::StrFormat("%d tensor ranks do not divide the %d heads of layer %s", tp, shape.heads,
                                    planned.name));
  }
  KdaLayer layer{.shape = shape, .heads = shape.heads / tp};
  const std::vector<StateTensor>& states = planned.layout.states;
  KVASIR_RETURN_IF_ERROR(CheckCount(planned, "state", states.size(), 2));
  layer.dtype = states[0].dtype;
  KVASIR_RETURN_IF_ERROR(CheckDType(planned, layer.dtype));
  // A verify overwrites N rows beyond what the convolution itself looks back to.
  layer.history = shape.conv_kernel - 1 + plan.draft_tokens;
  KVASIR_RETURN_IF_ERROR(
      CheckTensor(planned, "state", states, 0,
                  {.name = "conv", .elements = layer.history * 3 * layer.width(), .dtype = layer.dtype}));
  KVASIR_RETURN_IF_ERROR(
      CheckTensor(planned, "state", states, 1,
                  {.name = "recurrent", .elements = layer.width() * shape.head_dim, .dtype = DType::kF32}));
  const auto at = [&](std::int64_t offset) {
    return StateGeometry{.stride_bytes = pool.stride_bytes,
                         .offset_bytes = planned.offset_bytes + offset,
                         .part = planned.part,
                         .parts = pool.parts};
  };
  layer.conv = at(StateTensorOffset(planned.layout, 0));
  layer.state = at(StateTensorOffset(planned.layout, 1));
  layer.has_ring = plan.rollback == StateRollback::kReplay;
  const std::vector<StateTensor>& ring = planned.layout.ring;
  KVASIR_RETURN_IF_ERROR(CheckCount(planned, "ring", ring.size(), layer.has_ring ? 2 : 0));
  if (!layer.has_ring) return layer;
  KVASIR_RETURN_IF_ERROR(CheckTensor(planned, "ring", ring, 0,
                                     {.name = "decay", .elements = layer.width(), .dtype = DType::kF32}));
  KVASIR_RETURN_IF_ERROR(
      CheckTensor(planned, "ring", ring, 1, {.name = "beta", .elements = layer.heads, .dtype = DType::kF32}));
  const std::int64_t rows = plan.draft_tokens;
  layer.ring_decay = at(RingTensorOffset(planned.layout, 0, rows));
  layer.ring_beta = at(RingTensorOffset(planned.layout, 1, rows));
  return layer;
}

// Deviations that make a synthetic layer remember, and speak no louder than an MLA layer (role_model.cc):
// beta near 1/2, decays near 0.98 a token (a bias near -4 under the softplus). The norm leaves a head's
// output with deviation 1 and the gate halves it, where attention averages: so the branch needs no gain.
void DeclareKdaWeights(const std::string& prefix, const RankPlace& place, std::int64_t hidden,
                       WeightSet& weights, KdaLayer* layer) {
  const KdaShape& shape = layer->shape;
  const std::int64_t tp = place.topology.tp;
  const std::int64_t width = shape.heads * shape.head_dim;
  KdaWeights& out = layer->weights;
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  const auto rows = [&](WeightSpec spec, const float** to) {
    weights.AddRows(std::move(spec), place.rank, tp, to);
  };
  rows(MatrixSpec(prefix + "q", width, hidden), &out.q);
  rows(MatrixSpec(prefix + "k", width, hidden), &out.k);
  rows(MatrixSpec(prefix + "v", width, hidden), &out.v);
  rows(MatrixSpec(prefix + "q_conv", width, shape.conv_kernel), &out.q_conv);
  rows(MatrixSpec(prefix + "k_conv", width, shape.conv_kernel), &out.k_conv);
  rows(MatrixSpec(prefix + "v_conv", width, shape.conv_kernel), &out.v_conv);
  whole(MatrixSpec(prefix + "decay_down", shape.head_dim, hidden), &out.f_down);
  rows(MatrixSpec(prefix + "decay_up", width, shape.head_dim), &out.f_up);
  rows(RateSpec(prefix + "decay_log", shape.heads), &out.a_log);
  rows(BiasSpec(prefix + "decay_bias", width), &out.dt_bias);
  rows(MatrixSpec(prefix + "beta", shape.heads, hidden), &out.beta);
  std::int64_t gate_in = hidden;
  if (!shape.full_rank_gate) {
    whole(MatrixSpec(prefix + "gate_down", shape.head_dim, hidden), &out.gate_down);
    gate_in = shape.head_dim;
  }
  rows(MatrixSpec(prefix + (shape.full_rank_gate ? "gate" : "gate_up"), width, gate_in), &out.gate_up);
  whole(NormSpec(prefix + "head_norm", shape.head_dim), &out.out_norm);
  const WeightSpec project = MatrixSpec(prefix + "out", hidden, width);
  weights.Add(project, ColumnShard(project, place.rank, tp), &out.out);
}

}  // namespace kvasir
