// Falcon (7B, 40B, 180B, 11B): one key-value head where multi_query says so, unless the newer decoder counts
// them; a plain MLP of four times the width. The oldest files have other names for the same fields.
#include <cstdint>
#include <string_view>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"

namespace kvasir {
namespace {

constexpr std::int64_t kContext = 2048;  // the class's default; early files leave it out
constexpr std::int64_t kExpansion = 4;

std::int64_t ReadKvHeads(const ConfigObject& config, std::int64_t heads) {
  if (!config.BoolOr("new_decoder_architecture", false) && config.BoolOr("multi_query", true)) return 1;
  return config.IntOr(config.FirstOf({"num_kv_heads", "n_head_kv"}), kHeadsRange, heads);
}

}  // namespace

void ReadFalcon(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.eps_field = "layer_norm_epsilon", .context = kContext, .tied = true}, model);
  model.rope = ReadRope(config);
  if (config.BoolOr("alibi", false)) model.rope.partial = 0.0;  // linear biases: no lane turns
  AttentionShape attention;
  const std::string_view heads = config.FirstOf({"num_attention_heads", "n_head"});
  attention.heads = config.Int(heads, kHeadsRange);
  attention.kv_heads = ReadKvHeads(config, attention.heads);
  if (model.hidden % attention.heads != 0 || attention.heads % attention.kv_heads != 0) {
    config.Fail(ConfigFault::kContradiction, heads,
                "it must divide hidden_size, and be a multiple of the key-value heads");
  }
  attention.head_dim = model.hidden / attention.heads;
  attention.value_dim = attention.head_dim;
  MlpShape mlp;
  mlp.intermediate = config.IntOr("ffn_hidden_size", kDimRange, kExpansion * model.hidden);
  mlp.gated = false;
  const std::int64_t layers = config.Int(config.FirstOf({"num_hidden_layers", "n_layer"}), kLayersRange);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(attention, mlp, model.layers);
}

}  // namespace kvasir
