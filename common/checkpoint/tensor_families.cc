#include "common/checkpoint/tensor_families.h"

#include <variant>

#include "absl/strings/str_format.h"
#include "common/models/model_fields.h"

namespace kvasir {
namespace {

constexpr std::string_view kMaskRefusal = "the engine embeds masked rows as the mask token only";

}  // namespace

TensorList::TensorList(const ModelDescription& model, TensorFamily family)
    : model_(model),
      family_(family),
      wrapper_(family == TensorFamily::kKimiK3 ? "language_model." : ""),
      body_(draft() ? "" : wrapper_ + "model.") {}

ExpectedTensor& TensorList::AddPlain(TensorKind kind, std::string_view name, TensorShape shape) {
  ExpectedTensor tensor;
  tensor.key = {kind, layer_, expert_};
  tensor.name = absl::StrFormat("%s%s", prefix_, name);
  tensor.shapes.push_back(std::move(shape));
  tensors_.push_back(std::move(tensor));
  return tensors_.back();
}

ExpectedTensor& TensorList::Add(TensorKind kind, std::string_view name, TensorShape shape) {
  return AddPlain(kind, absl::StrFormat("%s.weight", name), std::move(shape));
}

void TensorList::Unsupported(std::string what) {
  if (unsupported_.empty()) unsupported_ = std::move(what);
}

std::string TensorList::LayerPrefix(std::int32_t layer) const {
  return absl::StrFormat("%slayers.%d.", body_, layer + (mtp() ? model_.draft->target_layers : 0));
}

void TensorList::AddMtp() {
  const std::int64_t hidden = model_.hidden;
  if (family_ != TensorFamily::kDeepseek || model_.layers.size() != 1) {
    Unsupported(
        absl::StrFormat("%d MTP modules of architecture %s", model_.layers.size(), model_.architecture));
  }
  prefix_ = LayerPrefix(0);
  Add(TensorKind::kEmbedding, "embed_tokens", {model_.vocab, hidden}).optional = true;
  Add(TensorKind::kTokenNorm, "enorm", {hidden});
  Add(TensorKind::kStateNorm, "hnorm", {hidden});
  Add(TensorKind::kPairProj, "eh_proj", {hidden, 2 * hidden});
  Add(TensorKind::kFinalNorm, "shared_head.norm", {hidden});
  Add(TensorKind::kHead, "shared_head.head", {model_.vocab, hidden}).optional = true;
}

void TensorList::AddModel() {
  if (mtp()) return AddMtp();
  const std::int64_t hidden = model_.hidden;
  const bool own_embedding = !model_.draft.has_value() || model_.draft->own_embedding;
  const bool own_head = model_.draft.has_value() ? model_.draft->own_head : !model_.tied_embedding;
  if (draft() != model_.draft.has_value()) Unsupported("a draft of architecture " + model_.architecture);
  prefix_ = body_;
  Add(TensorKind::kEmbedding, "embed_tokens", {model_.vocab, hidden}).optional = !own_embedding;
  const bool k3_draft = family_ == TensorFamily::kK3Dspark;
  Add(TensorKind::kFinalNorm, k3_draft ? "final_norm" : "norm", {hidden});
  if (model_.residual_block > 0) {
    Add(TensorKind::kOutputResidualNorm, "output_attn_res_norm", {hidden});
    Add(TensorKind::kOutputResidualProj, "output_attn_res_proj", {1, hidden});
  }
  if (model_.draft.has_value()) AddDraft(*model_.draft);
  prefix_ = wrapper_;
  Add(TensorKind::kHead, "lm_head", {model_.vocab, hidden}).optional = !own_head;
}

void TensorList::AddDraft(const DraftShape& draft) {
  const std::int64_t hidden = model_.hidden;
  const std::int64_t rank = draft.markov_rank;
  const std::int64_t taps = static_cast<std::int64_t>(draft.target_taps.size());
  const bool k3 = family_ == TensorFamily::kK3Dspark;
  if (draft.method != DraftMethod::kDspark && draft.method != DraftMethod::kDflash) {
    Unsupported(absl::StrFormat("a draft by the method %s", DraftMethodName(draft.method)));
  }
  if (draft.head_vocab != 0) Unsupported(absl::StrFormat("a head of %d tokens only", draft.head_vocab));
  Add(TensorKind::kContextProj, k3 ? "context_proj" : "fc", {hidden, taps * draft.target_hidden});
  Add(TensorKind::kContextNorm, k3 ? "context_norm" : "hidden_norm", {hidden});
  if (!k3) {
    ExpectedTensor& mask = AddPlain(TensorKind::kMaskEmbedding, "mask_embedding", {hidden});
    mask.optional = true;
    mask.refusal = kMaskRefusal;
  }
  if (rank > 0) {
    Add(TensorKind::kMarkovIn, "markov_head.markov_w1", {model_.vocab, rank});
    Add(TensorKind::kMarkovOut, "markov_head.markov_w2", {model_.vocab, rank});
    if (draft.markov_head == MarkovHead::kGated) {
      Add(TensorKind::kMarkovGate, "markov_head.gate_proj", {rank, hidden + rank});
      AddPlain(TensorKind::kMarkovGateBias, "markov_head.gate_proj.bias", {rank});
    } else if (draft.markov_head == MarkovHead::kRnn) {
      Add(TensorKind::kMarkovJoint, "markov_head.joint_proj", {3 * rank, 2 * rank + hidden});
      AddPlain(TensorKind::kMarkovJointBias, "markov_head.joint_proj.bias", {3 * rank});
    }
  }
  if (draft.confidence_head) {
    const std::int64_t width = hidden + (draft.confidence_markov ? rank : 0);
    Add(TensorKind::kConfidence, "confidence_head.proj", {1, width});
    AddPlain(TensorKind::kConfidenceBias, "confidence_head.proj.bias", {1});
  }
}

void TensorList::AddLayer(const ModelLayer& layer) {
  layer_ = layer.index;
  prefix_ = LayerPrefix(layer.index);
  Add(TensorKind::kAttentionNorm, "input_layernorm", {model_.hidden});
  if (const auto* mla = std::get_if<MlaShape>(&layer.mixer)) {
    AddMla(*mla);
  } else if (const auto* kda = std::get_if<KdaShape>(&layer.mixer); kda != nullptr && kimi()) {
    AddKda(*kda);
  } else if (const auto* attention = std::get_if<AttentionShape>(&layer.mixer);
             attention != nullptr && family_ == TensorFamily::kBlockDraft) {
    AddAttention(*attention);
  } else {
    Unsupported(absl::StrFormat("layer %d of kind %s", layer.index, MixerKind(layer.mixer)));
  }
  if (!layer.extra.empty()) {
    Unsupported(
        absl::StrFormat("layer %d with a further cache (%s)", layer.index, MixerKind(layer.extra[0])));
  }
  Add(TensorKind::kMlpNorm, "post_attention_layernorm", {model_.hidden});
  if (model_.residual_block > 0) {
    Add(TensorKind::kAttentionResidualNorm, "self_attention_res_norm", {model_.hidden});
    Add(TensorKind::kAttentionResidualProj, "self_attention_res_proj", {1, model_.hidden});
    Add(TensorKind::kMlpResidualNorm, "mlp_res_norm", {model_.hidden});
    Add(TensorKind::kMlpResidualProj, "mlp_res_proj", {1, model_.hidden});
  }
  if (!layer.mlp.gated) Unsupported(absl::StrFormat("layer %d with an MLP without a gate", layer.index));
  if (layer.mlp.experts == 0) {
    AddMlp("mlp.", layer.mlp.intermediate, TensorKind::kMlpGate, TensorKind::kMlpUp, TensorKind::kMlpDown);
  } else {
    AddExperts(layer.mlp);
  }
  layer_ = -1;
}

void TensorList::AddMlp(std::string_view name, std::int64_t width, TensorKind gate, TensorKind up,
                        TensorKind down) {
  Add(gate, absl::StrFormat("%sgate_proj", name), {width, model_.hidden});
  Add(up, absl::StrFormat("%sup_proj", name), {width, model_.hidden});
  Add(down, absl::StrFormat("%sdown_proj", name), {model_.hidden, width});
}

void TensorList::AddMla(const MlaShape& mla) {
  const std::int64_t hidden = model_.hidden;
  if (mla.window != 0 || mla.ratio != 1 || mla.sinks || mla.o_lora_rank != 0) {
    Unsupported(
        absl::StrFormat("layer %d: MLA with a window, compressed rows, sinks or output groups", layer_));
  }
  const std::int64_t query_rows = mla.heads * (mla.nope_dim + mla.rope_dim);
  if (mla.q_lora_rank > 0) {
    Add(TensorKind::kQDown, "self_attn.q_a_proj", {mla.q_lora_rank, hidden});
    Add(TensorKind::kQNorm, "self_attn.q_a_layernorm", {mla.q_lora_rank});
    Add(TensorKind::kQUp, "self_attn.q_b_proj", {query_rows, mla.q_lora_rank});
  } else {
    Add(TensorKind::kQUp, "self_attn.q_proj", {query_rows, hidden});
  }
  Add(TensorKind::kKvDown, "self_attn.kv_a_proj_with_mqa", {mla.kv_lora_rank + mla.rope_dim, hidden});
  Add(TensorKind::kKvNorm, "self_attn.kv_a_layernorm", {mla.kv_lora_rank});
  Add(TensorKind::kKvUp, "self_attn.kv_b_proj",
      {mla.heads * (mla.nope_dim + mla.value_dim), mla.kv_lora_rank});
  if (mla.output_gate) Add(TensorKind::kGate, "self_attn.g_proj", {mla.heads * mla.value_dim, hidden});
  Add(TensorKind::kOut, "self_attn.o_proj", {hidden, mla.heads * mla.value_dim});
}

void TensorList::AddKda(const KdaShape& kda) {
  const std::int64_t hidden = model_.hidden;
  const std::int64_t dim = kda.head_dim;
  const std::int64_t width = kda.heads * dim;
  Add(TensorKind::kQ, "self_attn.q_proj", {width, hidden});
  Add(TensorKind::kK, "self_attn.k_proj", {width, hidden});
  Add(TensorKind::kV, "self_attn.v_proj", {width, hidden});
  const auto conv = [&](TensorKind kind, std::string_view name) {
    Add(kind, name, {width, 1, kda.conv_kernel}).shapes.push_back({width, kda.conv_kernel});
  };
  conv(TensorKind::kQConv, "self_attn.q_conv1d");
  conv(TensorKind::kKConv, "self_attn.k_conv1d");
  conv(TensorKind::kVConv, "self_attn.v_conv1d");
  AddPlain(TensorKind::kDecayLog, "self_attn.A_log", {1, 1, kda.heads, 1}).shapes.push_back({kda.heads});
  Add(TensorKind::kDecayDown, "self_attn.f_a_proj", {dim, hidden});
  Add(TensorKind::kDecayUp, "self_attn.f_b_proj", {width, dim});
  AddPlain(TensorKind::kDecayBias, "self_attn.dt_bias", {width});
  Add(TensorKind::kBeta, "self_attn.b_proj", {kda.heads, hidden});
  if (kda.full_rank_gate) {
    Add(TensorKind::kGate, "self_attn.g_proj", {width, hidden});
  } else {
    Add(TensorKind::kGateDown, "self_attn.g_a_proj", {dim, hidden});
    Add(TensorKind::kGateUp, "self_attn.g_b_proj", {width, dim});
  }
  Add(TensorKind::kHeadNorm, "self_attn.o_norm", {dim});
  Add(TensorKind::kOut, "self_attn.o_proj", {hidden, width});
}

void TensorList::AddAttention(const AttentionShape& attention) {
  const std::int64_t hidden = model_.hidden;
  if (attention.sinks || attention.sink_tokens != 0 || attention.output_gate ||
      attention.shares_with.has_value()) {
    Unsupported(absl::StrFormat("layer %d: attention with sinks, an output gate or a shared cache", layer_));
  }
  Add(TensorKind::kQ, "self_attn.q_proj", {attention.heads * attention.head_dim, hidden});
  Add(TensorKind::kK, "self_attn.k_proj", {attention.kv_heads * attention.head_dim, hidden});
  Add(TensorKind::kV, "self_attn.v_proj", {attention.kv_heads * attention.value_dim, hidden});
  Add(TensorKind::kQNorm, "self_attn.q_norm", {attention.head_dim});
  Add(TensorKind::kKNorm, "self_attn.k_norm", {attention.head_dim});
  Add(TensorKind::kOut, "self_attn.o_proj", {hidden, attention.heads * attention.value_dim});
}

void TensorList::AddExperts(const MlpShape& mlp) {
  if (mlp.intermediate != 0) Unsupported(absl::StrFormat("layer %d: experts beside a dense MLP", layer_));
  if (mlp.latent != 0 && !kimi()) Unsupported(absl::StrFormat("layer %d: experts in a latent space", layer_));
  const std::string block = kimi() ? "block_sparse_moe." : "mlp.";
  const std::int64_t width = mlp.latent != 0 ? mlp.latent : model_.hidden;
  Add(TensorKind::kRouter, block + "gate", {mlp.experts, model_.hidden});
  AddPlain(TensorKind::kRouterBias, block + "gate.e_score_correction_bias", {mlp.experts}).optional =
      !mlp.correction_bias;
  if (mlp.shared_experts > 0) {
    const std::int64_t shared =
        mlp.shared_intermediate != 0 ? mlp.shared_intermediate : mlp.shared_experts * mlp.expert_intermediate;
    AddMlp(block + "shared_experts.", shared, TensorKind::kSharedGate, TensorKind::kSharedUp,
           TensorKind::kSharedDown);
  }
  if (mlp.latent != 0) {
    Add(TensorKind::kLatentDown, block + "routed_expert_down_proj", {width, model_.hidden});
    Add(TensorKind::kLatentNorm, block + "routed_expert_norm", {width}).optional = !mlp.latent_norm;
    Add(TensorKind::kLatentUp, block + "routed_expert_up_proj", {model_.hidden, width});
  }
  for (std::int64_t expert = 0; expert < mlp.experts; ++expert) {
    expert_ = static_cast<std::int32_t>(expert);
    const std::string name = absl::StrFormat("%sexperts.%d.", block, expert);
    Add(TensorKind::kExpertGate, name + (kimi() ? "w1" : "gate_proj"), {mlp.expert_intermediate, width});
    Add(TensorKind::kExpertUp, name + (kimi() ? "w3" : "up_proj"), {mlp.expert_intermediate, width});
    Add(TensorKind::kExpertDown, name + (kimi() ? "w2" : "down_proj"), {width, mlp.expert_intermediate});
  }
  expert_ = -1;
}

}  // namespace kvasir
