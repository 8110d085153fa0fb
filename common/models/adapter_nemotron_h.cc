// Nemotron-H: one block a letter of hybrid_override_pattern (M Mamba-2, * attention, - dense MLP, E experts),
// or a word of layers_block_type. Blocks are normalised and added one by one, so each is a layer of its own
// here: a mixer without an MLP, or an MLP without a mixer. Attention has no rotary embedding; MLPs are not
// gated.
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/mamba2_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

constexpr std::array kBlockWords = {
    std::pair{std::string_view("mamba"), 'M'}, std::pair{std::string_view("attention"), '*'},
    std::pair{std::string_view("mlp"), '-'}, std::pair{std::string_view("moe"), 'E'}};

struct Pattern {
  std::string_view field;
  std::string letters;
};

// The letters of one of the two spellings; empty if the file has neither.
Pattern ReadPattern(const ConfigObject& config, std::string_view letters_field,
                    std::string_view words_field) {
  if (!config.Has(words_field)) return {letters_field, config.TextOr(letters_field, "")};
  Pattern pattern{words_field, ""};
  for (const std::string& word : config.TextList(words_field)) {
    char letter = '?';
    for (const auto& [known, known_letter] : kBlockWords) {
      if (known == word) letter = known_letter;
    }
    if (letter == '?') {
      config.FailValue(ConfigFault::kOutOfLimit, words_field, word,
                       "known blocks: mamba, attention, mlp, moe");
    }
    pattern.letters += letter;
  }
  return pattern;
}

Mamba2Shape ReadMamba(const ConfigObject& config) {
  const std::int64_t heads = config.Int("mamba_num_heads", kHeadsRange);
  const std::int64_t head_dim = config.Int("mamba_head_dim", kDimRange);
  const Mamba2Fields fields{"mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"};
  Mamba2Shape mamba = ReadMamba2(config, fields, heads * head_dim);
  mamba.draft_rows = true;
  mamba.state_dtype = ReadStateDType(config, "mamba_ssm_cache_dtype", DType::kF32);
  return mamba;
}

// What each letter stands for; only the letters that occur are read.
struct Blocks {
  Mamba2Shape mamba;
  AttentionShape attention;
  MlpShape dense;
  MlpShape experts;

  Blocks(const ConfigObject& config, std::int64_t hidden, const std::string& letters) {
    const auto has = [&letters](char letter) { return letters.find(letter) != std::string::npos; };
    if (has('M')) mamba = ReadMamba(config);
    if (has('*')) {
      attention = ReadAttention(config, hidden);
      // Older files have attention_head_dim; theirs is the width, whatever hidden / heads gives.
      const std::string_view field = config.FirstOf({"head_dim", "attention_head_dim"});
      attention.head_dim = config.IntOr(field, kDimRange, attention.head_dim);
      attention.value_dim = attention.head_dim;
    }
    if (has('-')) dense = ReadDense(config);
    if (has('E')) {
      experts = ReadExperts(config, {.shared_intermediate = "moe_shared_expert_intermediate_size",
                                     .latent = "moe_latent_size"});
    }
    dense.gated = experts.gated = false;
  }

  void Add(const ConfigObject& config, const Pattern& pattern, std::vector<ModelLayer>& layers) const {
    for (const char letter : pattern.letters) {
      if (letter == 'M') {
        AddLayer(mamba, {}, layers);
      } else if (letter == '*') {
        AddLayer(attention, {}, layers);
      } else if (letter == '-' || letter == 'E') {
        AddLayer(NoMixer{}, letter == '-' ? dense : experts, layers);
      } else {
        config.FailValue(ConfigFault::kOutOfLimit, pattern.field, std::string(1, letter),
                         "known blocks: M, *, -, E");
      }
    }
  }
};

}  // namespace

void ReadNemotronH(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.eps_field = config.FirstOf({"layer_norm_epsilon", "rms_norm_eps"})}, model);
  const Pattern pattern = ReadPattern(config, "hybrid_override_pattern", "layers_block_type");
  const auto size = static_cast<std::int64_t>(pattern.letters.size());
  if (size == 0 || size > kLayersMax) {
    config.FailValue(ConfigFault::kOutOfLimit, pattern.field, absl::StrFormat("%d blocks", size),
                     absl::StrFormat("expected 1 to %d", kLayersMax));
    return;
  }
  if (config.IntOr("num_hidden_layers", kLayersRange, size) != size) {
    config.Fail(ConfigFault::kContradiction, "num_hidden_layers",
                absl::StrFormat("%s has %d blocks", pattern.field, size));
  }
  const Pattern ahead = ReadPattern(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  const Blocks blocks(config, model.hidden, pattern.letters + ahead.letters);
  blocks.Add(config, pattern, model.layers);
  const std::int64_t depth = config.IntOr("num_nextn_predict_layers", {0, kDraftTokensMax}, 0);
  if (ahead.letters.empty() || depth == 0) return;
  model.mtp_depth = depth;
  for (std::int64_t i = 0; i < depth && model.mtp_layers.size() <= static_cast<std::size_t>(kLayersMax); ++i)
    blocks.Add(config, ahead, model.mtp_layers);
}

}  // namespace kvasir
