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
           "BACKEND_UNSUPPORTED_GROUP %s: %s; this worker runs MLA layers and keys and values per head over "
           "full context, and KDA layers, with dense MLPs or experts",
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
  const bool block =
      model.draft->method == DraftMethod::kDspark || model.draft->method == DraftMethod::kDflash;
  if (!block || model.draft->head_vocab != 0) {
    return Unsupported(group, "its draft is not DSpark or DFlash with the whole vocabulary");
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

// Of synthetic queries: scores differ enough for a row to prefer a few keys, so that attention carries
// context and not an average, which would favour one token for ever.
constexpr std::int64_t kQueryGain = 4;

// Names of a role's tensors; they seed the weights, so they may never change.
std::string RolePrefix(Role role) { return role == Role::kTarget ? "target." : "draft."; }

void DeclareMla(const std::string& prefix, const RankPlace& place, std::int64_t hidden, WeightSet& weights,
                MlaLayer* layer) {
  const MlaShape& mla = layer->shape;
  const std::int64_t tp = place.topology.tp;
  MlaWeights& out = layer->weights;
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  const auto rows = [&](WeightSpec spec, const float** to) {
    weights.AddRows(std::move(spec), place.rank, tp, to);
  };
  std::int64_t query_in = hidden;
  if (mla.q_lora_rank > 0) {
    whole(MatrixSpec(prefix + "q_down", mla.q_lora_rank, hidden), &out.q_down);
    whole(NormSpec(prefix + "q_norm", mla.q_lora_rank), &out.q_norm);
    query_in = mla.q_lora_rank;
  }
  rows(MatrixSpec(prefix + "q_up", mla.heads * layer->query_dim(), query_in, kQueryGain), &out.q_up);
  whole(MatrixSpec(prefix + "kv_down", layer->row_dim(), hidden), &out.kv_down);
  whole(NormSpec(prefix + "kv_norm", mla.kv_lora_rank), &out.kv_norm);
  // One tensor as in published checkpoints, per head first the key rows, then the value rows.
  const std::int64_t step = mla.nope_dim + mla.value_dim;
  const WeightSpec kv_up = MatrixSpec(prefix + "kv_up", mla.heads * step, mla.kv_lora_rank);
  TensorPart part{.row_begin = place.rank * layer->heads * step,
                  .rows = mla.nope_dim,
                  .row_step = step,
                  .blocks = layer->heads,
                  .cols = mla.kv_lora_rank};
  weights.Add(kv_up, part, &out.w_uk);
  part.row_begin += mla.nope_dim;
  part.rows = mla.value_dim;
  weights.Add(kv_up, part, &out.w_uv);
  if (mla.output_gate) rows(MatrixSpec(prefix + "gate", mla.heads * mla.value_dim, hidden), &out.gate);
  const WeightSpec project =
      MatrixSpec(prefix + "out", hidden, mla.heads * mla.value_dim, kBranchGainNum, kBranchGainDen);
  weights.Add(project, ColumnShard(project, place.rank, tp), &out.out);
}

// The weights of one attention over residuals.
void DeclareMixture(const std::string& prefix, std::int64_t hidden, WeightSet& weights, const float** norm,
                    const float** proj) {
  weights.AddWhole(NormSpec(prefix + "_residual_norm", hidden), norm);
  weights.AddWhole(MatrixSpec(prefix + "_residual_proj", 1, hidden), proj);
}

void DeclareMixer(const std::string& prefix, const RankPlace& place, const ModelDescription& model,
                  WeightSet& weights, RoleLayer* layer) {
  LayerWeights& out = layer->weights;
  weights.AddWhole(NormSpec(prefix + "attention_norm", model.hidden), &out.attention_norm);
  if (model.residual_block > 0) {
    DeclareMixture(prefix + "attention", model.hidden, weights, &out.attention_residual_norm,
                   &out.attention_residual_proj);
    DeclareMixture(prefix + "mlp", model.hidden, weights, &out.mlp_residual_norm, &out.mlp_residual_proj);
  }
  if (auto* kda = std::get_if<KdaLayer>(&layer->mixer)) {
    DeclareKdaWeights(prefix, place, model.hidden, weights, kda);
    return;
  }
  if (auto* gqa = std::get_if<GqaLayer>(&layer->mixer)) {
    DeclareGqaWeights(prefix, place, model.hidden, weights, gqa);
    weights.AddTable(RopeFrequencies(model.rope, gqa->shape.head_dim), &gqa->weights.frequencies);
    return;
  }
  MlaLayer& mla = std::get<MlaLayer>(layer->mixer);
  DeclareMla(prefix, place, model.hidden, weights, &mla);
  if (!mla.shape.rotate) return;
  weights.AddTable(RopeFrequencies(model.rope, mla.shape.rope_dim), &mla.weights.frequencies);
}

void DeclareHeads(const std::string& prefix, const RoleModel& model, WeightSet& weights, DraftHeads* out) {
  const std::int64_t rank = out->markov_rank;
  const std::int64_t hidden = model.hidden;
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  if (rank > 0) {
    whole(MarkovInSpec(prefix + "markov", model.vocab, rank), &out->markov_in);
    whole(MarkovOutSpec(prefix + "markov", model.vocab, rank), &out->markov_out);
    if (out->markov_head == MarkovHead::kGated) {
      whole(MatrixSpec(prefix + "markov_gate", rank, hidden + rank), &out->markov_mix);
      whole(MatrixSpec(prefix + "markov_gate_bias", 1, rank), &out->markov_mix_bias);
    } else if (out->markov_head == MarkovHead::kRnn) {
      whole(MatrixSpec(prefix + "markov_joint", 3 * rank, 2 * rank + hidden), &out->markov_mix);
      whole(MatrixSpec(prefix + "markov_joint_bias", 1, 3 * rank), &out->markov_mix_bias);
    }
  }
  if (!out->has_confidence) return;
  const std::int64_t width = hidden + (out->confidence_markov ? rank : 0);
  whole(MatrixSpec(prefix + "confidence", 1, width), &out->confidence);
  whole(MatrixSpec(prefix + "confidence_bias", 1, 1), &out->confidence_bias);
}

}  // namespace

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

void DeclareWeights(const ModelDescription& model, const RankPlace& place, WeightSet& weights,
                    RoleModel* out) {
  const std::string prefix = RolePrefix(out->role);
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  const std::int64_t head_shards = out->vocab_local == out->vocab ? 1 : out->tensor_ranks;
  const std::int64_t head_index = head_shards == 1 ? 0 : place.rank;
  const bool draft = model.draft.has_value();
  if (!draft || model.draft->own_embedding) {
    whole(EmbeddingSpec(prefix + "embedding", out->vocab, out->hidden), &out->embedding);
  }
  if (!draft || model.draft->own_head) {
    const bool own = !draft || model.draft->own_embedding;
    WeightSpec head =
        model.tied_embedding
            ? EmbeddingSpec(prefix + "embedding", out->vocab, out->hidden)
            : HeadSpec((own ? prefix : RolePrefix(Role::kTarget)) + "embedding", out->vocab, out->hidden);
    if (!model.tied_embedding) head.name = prefix + "head";
    weights.Add(head, RowShard(head, head_index, head_shards), &out->head);
  }
  for (std::size_t i = 0; i < out->layers.size(); ++i) {
    const std::string layer_prefix = absl::StrFormat("%slayers.%d.", prefix, i);
    DeclareMixer(layer_prefix, place, model, weights, &out->layers[i]);
    DeclareMlp(layer_prefix, place, out->hidden, weights, &out->layers[i]);
  }
  // A draft's base logits are a quarter of the target's, so that its Markov head decides and the base, which
  // has learned nothing, only colours.
  constexpr int kDraftNormExponent = -2;
  whole(NormSpec(prefix + "final_norm", out->hidden, draft ? kDraftNormExponent : 0), &out->final_norm);
  if (out->residual_block > 0) {
    DeclareMixture(prefix + "output", out->hidden, weights, &out->output_residual_norm,
                   &out->output_residual_proj);
  }
  if (!draft) return;
  const std::int64_t taps = static_cast<std::int64_t>(out->taps.size());
  whole(MatrixSpec(prefix + "context_proj", out->hidden, taps * out->tap_hidden), &out->context_proj);
  whole(NormSpec(prefix + "context_norm", out->hidden), &out->context_norm);
  DeclareHeads(prefix, *out, weights, &out->heads);
}

}  // namespace kvasir
