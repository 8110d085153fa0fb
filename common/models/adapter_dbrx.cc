// DBRX: grouped-query attention and experts in every layer, in nested objects with names of their own.
#include <cstdint>
#include <optional>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"

namespace kvasir {
namespace {

AttentionShape ReadHeads(const ConfigObject& config, const ConfigObject& nested, std::int64_t hidden) {
  AttentionShape attention;
  attention.heads = config.Int("n_heads", kHeadsRange);
  attention.kv_heads = nested.IntOr("kv_n_heads", kHeadsRange, 1);
  if (hidden % attention.heads != 0 || attention.heads % attention.kv_heads != 0) {
    config.Fail(ConfigFault::kContradiction, "n_heads",
                "it must divide d_model, and be a multiple of attn_config.kv_n_heads");
  }
  attention.head_dim = hidden / attention.heads;
  attention.value_dim = attention.head_dim;
  return attention;
}

// With the class's defaults.
MlpShape ReadExperts(const ConfigObject& nested) {
  MlpShape mlp;
  mlp.experts = nested.IntOr("moe_num_experts", kDimRange, 4);
  mlp.experts_per_token = nested.IntOr("moe_top_k", {1, mlp.experts}, 1);
  mlp.expert_intermediate = nested.IntOr("ffn_hidden_size", kDimRange, 3584);
  return mlp;
}

}  // namespace

void ReadDbrx(const ConfigObject& config, ModelDescription& model) {
  model.hidden = config.Int("d_model", kDimRange);
  model.vocab = config.Int("vocab_size", kDimRange);
  model.context = config.Int("max_seq_len", kTokensRange);
  model.rms_eps = 1e-5;
  const std::optional<ConfigObject> nested = config.Object("attn_config");
  const std::optional<ConfigObject> experts = config.Object("ffn_config");
  if (!nested.has_value() || !experts.has_value()) return;
  model.rope.theta = nested->RealOr("rope_theta", {1.0, 1e12}, 10000.0);
  const AttentionShape attention = ReadHeads(config, *nested, model.hidden);
  const MlpShape mlp = ReadExperts(*experts);
  const std::int64_t layers = config.Int("n_layers", kLayersRange);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(attention, mlp, model.layers);
}

}  // namespace kvasir
