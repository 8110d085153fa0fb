// Nemotron-NAS (DeciLM): each block says for itself whether it has attention, how many query heads share a
// key, and how wide its MLP is.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// ffn_mult is a share of 8/3 hidden, as Llama counts it: 2/3 of the product, up to the next multiple of 256.
MlpShape ReadFfn(const ConfigObject& ffn, std::int64_t hidden) {
  MlpShape mlp;
  if (ffn.BoolOr("no_op", false)) return mlp;
  if (ffn.BoolOr("replace_with_linear", false)) {
    // One hidden x hidden matrix, written as two of half the size.
    mlp.gated = false;
    mlp.intermediate = hidden / 2;
    return mlp;
  }
  if (ffn.Has("intermediate_size")) return ReadDense(ffn);
  const double share = ffn.Real("ffn_mult", {0.0, 64.0});
  const auto width = static_cast<std::int64_t>(2.0 * share * static_cast<double>(hidden) / 3.0);
  mlp.intermediate = (width + 255) / 256 * 256;
  return mlp;
}

MixerShape ReadMixer(const ConfigObject& block, const AttentionShape& shape) {
  if (block.BoolOr("no_op", false)) return NoMixer{};
  if (block.BoolOr("replace_with_linear", false)) return NoMixer{.linear = true};
  AttentionShape attention = shape;
  const std::int64_t sharing = block.Int("n_heads_in_group", kHeadsRange);
  if (attention.heads % sharing != 0) {
    block.Fail(ConfigFault::kContradiction, "n_heads_in_group",
               absl::StrFormat("it must divide num_attention_heads = %d", attention.heads));
  }
  attention.kv_heads = std::max<std::int64_t>(1, attention.heads / sharing);
  attention.window = block.IntOr("window_length", kTokensRange, 0);
  return attention;
}

}  // namespace

void ReadNemotronNas(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const std::vector<ConfigObject> blocks = config.Objects("block_configs");
  const std::int64_t layers = ReadLayerCount(config);
  if (blocks.size() != static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "block_configs",
                absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    return;
  }
  for (const ConfigObject& block : blocks) {
    const std::optional<ConfigObject> mixer = block.Object("attention");
    const std::optional<ConfigObject> ffn = block.Object("ffn");
    if (!mixer.has_value() || !ffn.has_value()) return;
    AddLayer(ReadMixer(*mixer, attention), ReadFfn(*ffn, model.hidden), model.layers);
  }
}

}  // namespace kvasir
