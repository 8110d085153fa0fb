#include "common/models/config_fields.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

constexpr RealRange kThetaRange{1.0, 1e12};

// Both spellings may stand in a file; they must then agree.
DType ReadDType(const ConfigObject& config) {
  constexpr std::array kNames = {std::pair{std::string_view("bfloat16"), DType::kBf16},
                                 std::pair{std::string_view("float16"), DType::kF16},
                                 std::pair{std::string_view("float32"), DType::kF32}};
  const std::string_view field = config.Has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = config.Text(field);
  if (field == "dtype" && config.Has("torch_dtype") && config.TextOr("torch_dtype", "") != name) {
    config.Fail(ConfigFault::kContradiction, "torch_dtype",
                absl::StrFormat("dtype says %s; remove one of the two", name));
  }
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  config.Fail(ConfigFault::kOutOfLimit, field, "expected bfloat16, float16 or float32");
  return DType::kBf16;
}

// The YaRN fields of `scaling`, or a plain embedding.
void ReadScaling(const ConfigObject& scaling, Rope& rope) {
  const std::string_view field = scaling.Has("rope_type") ? "rope_type" : "type";
  const std::string type = scaling.TextOr(field, "default");
  if (type == "default") return;
  if (type != "yarn") {
    scaling.Fail(ConfigFault::kUnsupported, field,
                 "this rotary embedding is not described; known: default, yarn");
    return;
  }
  rope.factor = scaling.Real("factor", {1.0, 1e6});
  rope.original_context = scaling.Int("original_max_position_embeddings", {1, kContextTokensMax});
  rope.beta_fast = scaling.RealOr("beta_fast", {0.0, 1e6}, rope.beta_fast);
  rope.beta_slow = scaling.RealOr("beta_slow", {0.0, 1e6}, rope.beta_slow);
  rope.mscale = scaling.RealOr("mscale", {0.0, 1e3}, rope.mscale);
  rope.mscale_all_dim = scaling.RealOr("mscale_all_dim", {0.0, 1e3}, rope.mscale_all_dim);
}

}  // namespace

void ReadModelFields(const ConfigObject& config, std::string_view eps_field, ModelDescription& model) {
  model.hidden = config.Int("hidden_size", kDimRange);
  model.vocab = config.Int("vocab_size", kDimRange);
  const bool has_positions = config.Has("max_position_embeddings") || !config.Has("model_max_length");
  model.context =
      config.Int(has_positions ? "max_position_embeddings" : "model_max_length", {1, kContextTokensMax});
  model.dtype = ReadDType(config);
  model.rms_eps = config.RealOr(eps_field, {1e-30, 1.0}, model.rms_eps);
  model.tied_embedding = config.BoolOr("tie_word_embeddings", false);
}

Rope ReadRope(const ConfigObject& config) {
  Rope rope;
  rope.theta = config.RealOr("rope_theta", kThetaRange, rope.theta);
  Rope scaled = rope;
  if (config.Has("rope_scaling")) {
    const std::optional<ConfigObject> scaling = config.Object("rope_scaling");
    if (scaling.has_value()) ReadScaling(*scaling, scaled);
  }
  if (!config.Has("rope_parameters")) return scaled;
  const std::optional<ConfigObject> parameters = config.Object("rope_parameters");
  if (!parameters.has_value()) return scaled;
  Rope named = rope;
  named.theta = parameters->RealOr("rope_theta", kThetaRange, rope.theta);
  ReadScaling(*parameters, named);
  if (config.Has("rope_theta") && named.theta != rope.theta) {
    config.Fail(ConfigFault::kContradiction, "rope_theta",
                absl::StrFormat("rope_parameters.rope_theta says %g; give one value", named.theta));
  }
  scaled.theta = named.theta;
  if (config.Has("rope_scaling") && scaled != named) {
    config.Fail(ConfigFault::kContradiction, "rope_scaling",
                "rope_parameters says otherwise; remove one of the two");
  }
  return named;
}

MlaShape ReadMla(const ConfigObject& config) {
  MlaShape mla;
  mla.heads = config.Int("num_attention_heads", kHeadsRange);
  mla.q_lora_rank = config.IntOr("q_lora_rank", {0, kDimMax}, 0);
  mla.kv_lora_rank = config.Int("kv_lora_rank", kDimRange);
  mla.nope_dim = config.Int("qk_nope_head_dim", kDimRange);
  mla.rope_dim = config.Int("qk_rope_head_dim", kDimRange);
  mla.value_dim = config.Int("v_head_dim", kDimRange);
  return mla;
}

LayerMlps::LayerMlps(const ConfigObject& config, const ExpertFields& fields) {
  first_experts_ = kLayersMax;
  const bool has_experts = config.IntOr(fields.experts, {0, kDimMax}, 0) > 0;
  if (has_experts) {
    experts_.experts = config.Int(fields.experts, kDimRange);
    experts_.experts_per_token = config.Int(fields.per_token, {1, experts_.experts});
    experts_.shared_experts = config.IntOr(fields.shared, {0, kDimMax}, 0);
    experts_.expert_intermediate = config.Int("moe_intermediate_size", kDimRange);
    first_experts_ = config.IntOr("first_k_dense_replace", {0, kLayersMax}, 0);
    every_ = config.IntOr("moe_layer_freq", {1, kLayersMax}, 1);
  }
  if (!has_experts || first_experts_ > 0 || every_ > 1)
    dense_.intermediate = config.Int("intermediate_size", kDimRange);
}

MlpShape LayerMlps::At(std::int64_t layer) const {
  return layer >= first_experts_ && layer % every_ == 0 ? experts_ : dense_;
}

}  // namespace kvasir
