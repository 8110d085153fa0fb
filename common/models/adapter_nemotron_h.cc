// Nemotron-H: one letter a block in `hybrid_override_pattern`: M Mamba-2, * attention, - dense MLP, E
// experts. Each block is normalised and added on its own, so an M or * with the - or E after it is exactly
// one of our layers (mixer, then MLP); the blocks' own numbers are not kept. Attention has no rotary
// embedding here.
#include <array>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"

namespace kvasir {
namespace {

struct Blocks {
  Mamba2Shape mamba;
  AttentionShape attention;
  MlpShape dense;
  MlpShape experts;
};

Mamba2Shape ReadMamba(const ConfigObject& config) {
  Mamba2Shape mamba;
  mamba.heads = config.Int("mamba_num_heads", kHeadsRange);
  mamba.head_dim = config.Int("mamba_head_dim", kDimRange);
  mamba.state_dim = config.Int("ssm_state_size", kDimRange);
  mamba.groups = config.Int("n_groups", kHeadsRange);
  mamba.conv_kernel = config.Int("conv_kernel", {2, kDimMax});
  const std::string state = config.TextOr("mamba_ssm_cache_dtype", "float32");
  if (state == "bfloat16") mamba.state_dtype = DType::kBf16;
  if (state != "bfloat16" && state != "float32") {
    config.Fail(ConfigFault::kOutOfLimit, "mamba_ssm_cache_dtype", "expected bfloat16 or float32");
  }
  if (mamba.heads % mamba.groups != 0) {
    config.Fail(ConfigFault::kContradiction, "n_groups",
                absl::StrFormat("it must divide mamba_num_heads = %d", mamba.heads));
  }
  return mamba;
}

AttentionShape ReadAttention(const ConfigObject& config) {
  AttentionShape attention;
  attention.heads = config.Int("num_attention_heads", kHeadsRange);
  attention.kv_heads = config.IntOr("num_key_value_heads", kHeadsRange, attention.heads);
  const char* dim_field = config.Has("head_dim") ? "head_dim" : "attention_head_dim";
  attention.head_dim = config.Int(dim_field, kDimRange);
  attention.value_dim = attention.head_dim;
  if (attention.heads % attention.kv_heads != 0) {
    config.Fail(ConfigFault::kContradiction, "num_key_value_heads",
                absl::StrFormat("it must divide num_attention_heads = %d", attention.heads));
  }
  return attention;
}

MlpShape ReadExperts(const ConfigObject& config) {
  MlpShape experts;
  experts.experts = config.Int("n_routed_experts", kDimRange);
  experts.experts_per_token = config.Int("num_experts_per_tok", {1, experts.experts});
  experts.shared_experts = config.IntOr("n_shared_experts", {0, kDimMax}, 0);
  experts.expert_intermediate = config.Int("moe_intermediate_size", kDimRange);
  return experts;
}

bool HasMlp(const ModelLayer& layer) { return layer.mlp.intermediate > 0 || layer.mlp.experts > 0; }

void AddBlock(const ConfigObject& config, char letter, const Blocks& blocks, ModelDescription& model) {
  const auto index = static_cast<std::int32_t>(model.layers.size());
  if (letter == 'M') {
    model.layers.push_back({index, blocks.mamba, {}});
  } else if (letter == '*') {
    model.layers.push_back({index, blocks.attention, {}});
  } else if (letter != '-' && letter != 'E') {
    config.FailValue(ConfigFault::kOutOfLimit, "hybrid_override_pattern", std::string(1, letter),
                     "known blocks: M, *, -, E");
  } else if (model.layers.empty() || HasMlp(model.layers.back())) {
    config.FailValue(ConfigFault::kUnsupported, "hybrid_override_pattern", std::string(1, letter),
                     "an MLP block must follow a Mamba or attention block");
  } else {
    model.layers.back().mlp = letter == '-' ? blocks.dense : blocks.experts;
  }
}

}  // namespace

void ReadNemotronH(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, "layer_norm_epsilon", model);
  const std::string pattern = config.Text("hybrid_override_pattern");
  const auto size = static_cast<std::int64_t>(pattern.size());
  if (size > kLayersMax) {
    config.FailValue(ConfigFault::kOutOfLimit, "hybrid_override_pattern", absl::StrFormat("%d letters", size),
                     absl::StrFormat("at most %d", kLayersMax));
    return;
  }
  if (config.IntOr("num_hidden_layers", kLayersRange, size) != size) {
    config.Fail(ConfigFault::kContradiction, "num_hidden_layers",
                absl::StrFormat("hybrid_override_pattern has %d letters", size));
  }
  const auto has = [&pattern](char letter) { return pattern.find(letter) != std::string::npos; };
  Blocks blocks;
  if (has('M')) blocks.mamba = ReadMamba(config);
  if (has('*')) blocks.attention = ReadAttention(config);
  if (has('-')) blocks.dense.intermediate = config.Int("intermediate_size", kDimRange);
  if (has('E')) blocks.experts = ReadExperts(config);
  for (const char letter : pattern) AddBlock(config, letter, blocks, model);
}

}  // namespace kvasir
