// MPT: attention with linear biases, so no lane of a head turns, and a plain MLP. Its fields have names of
// their own; attn_config says how many key-value heads there are, all of them unless it does.
#include <cstdint>
#include <optional>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"

namespace kvasir {
namespace {

// The class's defaults, where a file leaves a field out.
constexpr std::int64_t kContext = 2048;
constexpr std::int64_t kExpansion = 4;

std::int64_t ReadKvHeads(const ConfigObject& config, std::int64_t heads) {
  const std::optional<ConfigObject> attention = config.ObjectIf("attn_config");
  if (!attention.has_value()) return heads;
  const bool one = attention->TextOr("attn_type", "multihead_attention") == "multiquery_attention";
  return attention->IntOr("kv_n_heads", kHeadsRange, one ? 1 : heads);
}

}  // namespace

void ReadMpt(const ConfigObject& config, ModelDescription& model) {
  model.hidden = config.Int("d_model", kDimRange);
  model.vocab = config.Int("vocab_size", kDimRange);
  model.context = config.IntOr("max_seq_len", kTokensRange, kContext);
  model.rms_eps = config.RealOr("layer_norm_epsilon", {1e-30, 1.0}, 1e-5);
  model.rope.partial = 0.0;
  model.tied_embedding = true;
  AttentionShape attention;
  attention.heads = config.Int("n_heads", kHeadsRange);
  attention.kv_heads = ReadKvHeads(config, attention.heads);
  if (model.hidden % attention.heads != 0 || attention.heads % attention.kv_heads != 0) {
    config.Fail(ConfigFault::kContradiction, "n_heads",
                "it must divide d_model, and be a multiple of attn_config.kv_n_heads");
  }
  attention.head_dim = model.hidden / attention.heads;
  attention.value_dim = attention.head_dim;
  MlpShape mlp;
  mlp.intermediate = model.hidden * config.IntOr("expansion_ratio", {1, 64}, kExpansion);
  mlp.gated = false;
  const std::int64_t layers = config.Int("n_layers", kLayersRange);
  for (std::int64_t i = 0; i < layers; ++i) AddLayer(attention, mlp, model.layers);
}

}  // namespace kvasir
