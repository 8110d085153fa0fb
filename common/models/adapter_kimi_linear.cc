// Kimi-Linear and Kimi-K3: KDA layers with MLA layers between them. `linear_attn_config` names both kinds in
// lists that count layers from 1 and must name every layer exactly once.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

enum class LayerKind : std::int8_t { kUnnamed, kKda, kMla };

// Marks the layers that `field` names.
void Mark(const ConfigObject& linear, std::string_view field, LayerKind kind, std::vector<LayerKind>& kinds) {
  const auto layers = static_cast<std::int64_t>(kinds.size());
  for (const std::int64_t one_based : linear.IntList(field, {1, layers})) {
    LayerKind& marked = kinds[static_cast<std::size_t>(one_based - 1)];
    if (marked != LayerKind::kUnnamed) {
      linear.FailValue(
          ConfigFault::kContradiction, field, absl::StrFormat("%d", one_based),
          "the layer is named twice (layers count from 1); kda_layers and full_attn_layers must name "
          "each layer once");
    }
    marked = kind;
  }
}

std::vector<LayerKind> ReadKinds(const ConfigObject& linear, std::int64_t layers) {
  std::vector<LayerKind> kinds(static_cast<std::size_t>(layers), LayerKind::kUnnamed);
  Mark(linear, "kda_layers", LayerKind::kKda, kinds);
  Mark(linear, "full_attn_layers", LayerKind::kMla, kinds);
  for (std::size_t i = 0; i < kinds.size() && linear.ok(); ++i) {
    if (kinds[i] != LayerKind::kUnnamed) continue;
    linear.FailValue(
        ConfigFault::kContradiction, "kda_layers", absl::StrFormat("no %d", i + 1),
        absl::StrFormat("layer %d (from 1) of num_hidden_layers = %d stands in neither kda_layers nor "
                        "full_attn_layers",
                        i + 1, layers));
  }
  return kinds;
}

// What a file leaves out is as in the family's class (vLLM, transformers_utils/configs/kimi_linear.py); the
// gate always has a correction bias. K3 lets experts work in a latent that may be normed before it is
// projected back, and has SiTU in every MLP (vLLM, models/kimi_k3/nvidia/model.py: KimiMoE, KimiMLP).
void ReadRouting(const ConfigObject& config, MlpShape& mlp) {
  mlp.scoring = ScoringOf(config.TextOr("moe_router_activation_func", "sigmoid"));
  mlp.latent_norm = mlp.latent > 0 && config.BoolOr("latent_moe_use_norm", false);
  if (mlp.scoring == ExpertScoring::kUnstated) return;
  mlp.correction_bias = true;
  if (config.BoolOr("use_grouped_topk", true)) {
    mlp.groups = config.IntOr("num_expert_group", kDimRange, 1);
    mlp.groups_kept = config.IntOr("topk_group", kDimRange, 1);
  }
  mlp.normalise = config.BoolOr("moe_renormalize", true);
  mlp.routed_scale = config.RealOr("routed_scaling_factor", kRoutedScaleRange, 1.0);
}

void ReadActivation(const ConfigObject& config, MlpShape& mlp) {
  constexpr RealRange kBetaRange{1e-6, 1e6};
  const std::string name = config.TextOr("hidden_act", "silu");
  if (name == "silu") return;
  if (name != "situ") {
    config.Fail(ConfigFault::kUnsupported, "hidden_act", "known: silu, situ");
    return;
  }
  mlp.situ_beta = config.RealOr("activation_situ_beta", kBetaRange, 1.0);
  if (config.Has("activation_situ_linear_beta")) {
    mlp.situ_linear_beta = config.Real("activation_situ_linear_beta", kBetaRange);
  }
}

}  // namespace

void ReadKimiLinear(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  MlaShape mla = ReadMla(config);
  mla.rotate = !config.BoolOr("mla_use_nope", false);
  mla.output_gate = config.BoolOr("mla_use_output_gate", false);
  const std::int64_t layers = ReadLayerCount(config);
  LayerMlps mlps = ReadMlps(config,
                            {.experts = "num_experts",
                             .per_token = "num_experts_per_token",
                             .shared = "num_shared_experts",
                             .latent = "routed_expert_hidden_size"},
                            layers);
  if (mlps.experts.experts > 0) ReadRouting(config, mlps.experts);
  ReadActivation(config, mlps.dense);
  ReadActivation(config, mlps.experts);
  model.residual_block = config.IntOr("attn_res_block_size", {0, kLayersMax}, 0);
  const std::optional<ConfigObject> linear = config.Object("linear_attn_config");
  if (!linear.has_value()) return;
  KdaShape kda;
  kda.heads = linear->Int("num_heads", kHeadsRange);
  kda.head_dim = linear->Int("head_dim", kDimRange);
  kda.conv_kernel = linear->Int("short_conv_kernel_size", kKernelRange);
  kda.full_rank_gate = linear->BoolOr("use_full_rank_gate", false);
  kda.gate_lower_bound = linear->RealOr("gate_lower_bound", {-100.0, 0.0}, 0.0);
  const std::vector<LayerKind> kinds = ReadKinds(*linear, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_kda = kinds[static_cast<std::size_t>(i)] == LayerKind::kKda;
    AddLayer(is_kda ? MixerShape(kda) : MixerShape(mla), mlps.At(i), model.layers);
  }
  ModelLayer predicting = model.layers.back();
  predicting.mixer = mla;
  AddMtpLayers(config, "num_nextn_predict_layers", predicting, model);
}

}  // namespace kvasir
