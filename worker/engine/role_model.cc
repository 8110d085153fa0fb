#include "worker/engine/role_model.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/engine/mlp_weights.h"
#include "worker/engine/rope_table.h"

namespace kvasir {
namespace {

// `group` is a group's name, or the role's where the plan has no group for the layer.
absl::Status Unsupported(std::string_view group, const std::string& what) {
  return MakeError(
      {.code = absl::StatusCode::kUnimplemented,
       .reason = reason::kBackendUnsupportedGroup,
       .message = absl::StrFormat(
           "BACKEND_UNSUPPORTED_GROUP %s: %s; this worker runs MLA layers over full context and KDA layers, "
           "with dense MLPs or experts, and in drafts keys and values per head",
           group, what),
       .metadata = {{"group", std::string(group)}}});
}

absl::Status Unsupported(const PlanGroup& group, const std::string& what) {
  return Unsupported(group.name, what);
}

absl::Status Mismatch(const std::string& field, std::string message) {
  return FieldError(reason::kConflictingFields, field, std::move(message));
}

absl::Status CheckGroup(const PlanGroup& group) {
  if (group.behaviour.mixer == Mixer::kRecurrent) {
    // A draft's context pass writes rows and runs no recurrence.
    if (group.behaviour.role == Role::kTarget) return absl::OkStatus();
    return Unsupported(group, "it holds recurrent layers of a draft");
  }
  if (group.behaviour.window != 0) {
    return Unsupported(group, absl::StrFormat("its window is %d tokens", group.behaviour.window));
  }
  for (const PlanLayer& layer : group.layers) {
    if (layer.layout.dtype != DType::kBf16 && layer.layout.dtype != DType::kF32) {
      return Unsupported(group, absl::StrFormat("layer %s keeps %s elements, not bf16 or f32", layer.name,
                                                DTypeName(layer.layout.dtype)));
    }
  }
  return absl::OkStatus();
}

// What the forward pass here does not compute, whatever the cache looks like.
absl::Status CheckModel(const PlanGroup& group, const ModelDescription& model) {
  const bool rotates =
      model.rope.kind == RopeKind::kYarn && model.rope.partial == 1.0 && model.rope.local_theta == 0.0;
  if (!rotates) return Unsupported(group, "its rotary embedding is neither plain nor YaRN over all lanes");
  if (!model.draft.has_value()) return absl::OkStatus();
  const DraftMethod method = model.draft->method;
  const bool known =
      method == DraftMethod::kDspark || method == DraftMethod::kDflash || method == DraftMethod::kMtp;
  if (!known || model.draft->head_vocab != 0) {
    return Unsupported(group, "its draft is not DSpark, DFlash or MTP with the whole vocabulary");
  }
  if (method == DraftMethod::kMtp && model.residual_block != 0) {
    return Unsupported(group, "its draft has MTP modules with attention over residuals");
  }
  if (method == DraftMethod::kMtp && !group.behaviour.causal) {
    return Unsupported(group, "its rows are not causal, and an MTP module drafts one after the other");
  }
  if (method == DraftMethod::kMtp && model.layers.size() != 1) {
    return Unsupported(group,
                       absl::StrFormat("its draft has %d MTP modules, and one is run", model.layers.size()));
  }
  const bool heads = model.draft->markov_rank > 0 || model.draft->confidence_head;
  if (heads && model.draft->AnchorPredictsNothing()) {
    return Unsupported(
        group, "its draft has a Markov or confidence head behind a block whose anchor predicts nothing");
  }
  return absl::OkStatus();
}

absl::Status CheckLayer(const PlanGroup& group, const PlanLayer& planned, const ModelLayer& described) {
  if (!described.extra.empty() || planned.id.cache != 0) {
    const std::string_view kind = described.extra.empty() ? "second" : MixerKind(described.extra[0]);
    return Unsupported(group, absl::StrFormat("layer %s keeps a further cache (%s)", planned.name, kind));
  }
  if (const std::string what = UnsupportedMlp(described.mlp); !what.empty()) {
    return Unsupported(group, absl::StrFormat("layer %s %s", planned.name, what));
  }
  return absl::OkStatus();
}

// Its sizes on this rank and its place in the arena.
absl::StatusOr<MlaLayer> MakeMlaLayer(const Plan& plan, const PlanPool& pool, const PlanGroup& group,
                                      const PlanLayer& planned, const MlaShape& mla) {
  if (mla.window != 0 || mla.ratio != 1 || mla.sinks || mla.o_lora_rank != 0) {
    return Unsupported(group, absl::StrFormat("layer %s has MLA with a window, compressed rows, sinks or "
                                              "output groups",
                                              planned.name));
  }
  if (planned.layout.key_dim != mla.kv_lora_rank || planned.layout.value_dim != mla.rope_dim) {
    return Mismatch(
        "plan.pools.groups.layers.layout",
        absl::StrFormat("layer %s: the plan's rows are %d + %d elements, the model's are %d + %d; "
                        "plan with this model description",
                        planned.name, planned.layout.key_dim, planned.layout.value_dim, mla.kv_lora_rank,
                        mla.rope_dim));
  }
  const std::int64_t tp = plan.topology.tp;
  if (mla.heads % tp != 0) {
    return Mismatch("plan.topology.tp",
                    absl::StrFormat("%d tensor ranks do not divide the %d heads of layer %s", tp, mla.heads,
                                    planned.name));
  }
  MlaLayer layer;
  layer.shape = mla;
  layer.heads = mla.heads / tp;
  layer.gathered_heads = planned.layout.sharded ? layer.heads * plan.topology.dcp : layer.heads;
  layer.page = {.stride_bytes = pool.stride_bytes,
                .layer_offset_bytes = planned.offset_bytes,
                .block_tokens = pool.block_tokens,
                .row_bytes = layer.row_dim() * DTypeBytes(planned.layout.dtype)};
  layer.dtype = planned.layout.dtype;
  return layer;
}

absl::StatusOr<RoleLayer> MakeLayer(const Plan& plan, const PlanPool& pool, const PlanGroup& group,
                                    const PlanLayer& planned, const ModelLayer& described) {
  KVASIR_RETURN_IF_ERROR(CheckLayer(group, planned, described));
  const bool recurrent = group.behaviour.mixer == Mixer::kRecurrent;
  const auto* mla = std::get_if<MlaShape>(&described.mixer);
  const auto* kda = std::get_if<KdaShape>(&described.mixer);
  const auto* gqa = std::get_if<AttentionShape>(&described.mixer);
  const bool per_head = planned.layout.kind == LayoutKind::kKeyValue;
  RoleLayer layer;
  if (recurrent && kda != nullptr) {
    KVASIR_ASSIGN_OR_RETURN(layer.mixer, MakeKdaLayer(plan, pool, planned, *kda));
  } else if (!recurrent && !per_head && mla != nullptr) {
    KVASIR_ASSIGN_OR_RETURN(layer.mixer, MakeMlaLayer(plan, pool, group, planned, *mla));
  } else if (!recurrent && per_head && gqa != nullptr && group.behaviour.role == Role::kTarget) {
    // Descriptions do not say what a target has around such heads: norms, biases, caps.
    return Unsupported(group,
                       absl::StrFormat("layer %s keeps keys and values per head of a target", planned.name));
  } else if (!recurrent && per_head && gqa != nullptr) {
    absl::StatusOr<GqaLayer> made = MakeGqaLayer(plan, pool, planned, *gqa);
    if (absl::IsUnimplemented(made.status())) return Unsupported(group, std::string(made.status().message()));
    KVASIR_ASSIGN_OR_RETURN(layer.mixer, std::move(made));
  } else {
    return Unsupported(group, absl::StrFormat("layer %s of the model is not %s", planned.name,
                                              recurrent  ? "KDA"
                                              : per_head ? "attention with keys and values per head"
                                                         : "MLA"));
  }
  const std::int64_t tp = plan.topology.tp;
  ShardMlp(described.mlp, tp, &layer);
  layer.group = group.id.value();
  layer.index = described.index;
  return layer;
}

}  // namespace

bool TurnsInHalves(const DraftShape& draft, const ModelDescription& target) {
  if (draft.method != DraftMethod::kDflash) return true;
  for (const ModelLayer& layer : target.layers) {
    if (const auto* mla = std::get_if<MlaShape>(&layer.mixer); mla != nullptr && mla->rotate) return false;
  }
  return true;
}

absl::StatusOr<RoleModel> MakeRoleModel(const Plan& plan, const RankPlace& place, Role role,
                                        const ModelDescription& model) {
  RoleModel out;
  out.role = role;
  out.hidden = model.hidden;
  out.vocab = model.vocab;
  out.tensor_ranks = place.topology.tp;
  out.context_ranks = place.topology.dcp;
  out.vocab_local = model.vocab % out.tensor_ranks == 0 ? model.vocab / out.tensor_ranks : model.vocab;
  out.eps = static_cast<float>(model.rms_eps);
  out.rope_magnitude = RopeMagnitude(model.rope);
  out.residual_block = model.residual_block;
  out.layers.resize(model.layers.size());
  std::vector<bool> seen(model.layers.size(), false);
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) {
      if (group.behaviour.role != role) continue;
      KVASIR_RETURN_IF_ERROR(CheckGroup(group));
      KVASIR_RETURN_IF_ERROR(CheckModel(group, model));
      for (const PlanLayer& layer : group.layers) {
        const std::size_t index = static_cast<std::size_t>(layer.id.index);
        if (index >= seen.size() || seen[index]) {
          return Mismatch("plan.pools.groups.layers",
                          absl::StrFormat("layer %s of group %s: the model has %d layers, each planned once",
                                          layer.name, group.name, model.layers.size()));
        }
        seen[index] = true;
        KVASIR_ASSIGN_OR_RETURN(out.layers[index], MakeLayer(plan, pool, group, layer, model.layers[index]));
        if (auto* mla = std::get_if<MlaLayer>(&out.layers[index].mixer)) {
          mla->scale = SoftmaxScale(mla->shape, model.rope);
        }
      }
    }
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const MixerShape& mixer = model.layers[i].mixer;
    const bool known = std::holds_alternative<MlaShape>(mixer) || std::holds_alternative<KdaShape>(mixer) ||
                       std::holds_alternative<AttentionShape>(mixer);
    if (!seen[i] && !known) {
      return Unsupported(RoleName(role), absl::StrFormat("layer %d of model %s is of kind %s", i, model.name,
                                                         MixerKind(mixer)));
    }
    if (!seen[i]) {
      return Mismatch("plan.pools.groups.layers",
                      absl::StrFormat("the plan has no cache for %s layer %d of model %s", RoleName(role), i,
                                      model.name));
    }
  }
  return out;
}

}  // namespace kvasir
