// DeepSeek-V4: every layer has MLA over a short window. compress_ratios says what else: 0 or 1 nothing, 4 a
// cache with one row for 4 tokens, which an indexer picks from, 128 a cache with one row for 128 tokens.
// Compressed rows are formed from a state of the last tokens. The list goes on with the layers of multi-token
// prediction, which have the window only.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

constexpr std::int64_t kPickedRatio = 4;
constexpr std::int64_t kCoarseRatio = 128;

// A row of ratio 4 looks back over two strides, one of ratio 128 over its own.
std::int64_t Strides(std::int64_t ratio) { return ratio == kPickedRatio ? 2 : 1; }

// Values and scores of each stride, `width` lanes each.
CompressorShape Compressor(std::int64_t ratio, std::int64_t width) {
  const std::int64_t strides = Strides(ratio);
  return {.ratio = ratio, .window = strides * ratio, .width = 2 * strides * width};
}

// The head's lanes are all of the row: the last qk_rope_head_dim are rotated, and all serve as values.
MlaShape ReadWindowed(const ConfigObject& config) {
  MlaShape mla;
  mla.heads = config.Int("num_attention_heads", kHeadsRange);
  mla.q_lora_rank = config.IntOr("q_lora_rank", kDimOrNoneRange, 0);
  mla.value_dim = config.Int("head_dim", {2, kDimMax});
  mla.rope_dim = config.Int("qk_rope_head_dim", {1, mla.value_dim - 1});
  mla.kv_lora_rank = mla.value_dim - mla.rope_dim;
  mla.nope_dim = mla.kv_lora_rank;
  mla.window = config.Int("sliding_window", kTokensRange);
  mla.o_lora_rank = config.IntOr("o_lora_rank", kDimOrNoneRange, 0);
  if (mla.o_lora_rank > 0) mla.o_groups = config.Int("o_groups", kHeadsRange);
  mla.sinks = true;
  return mla;
}

struct Compressed {
  MlaShape mla;  // the windowed one
  IndexerShape indexer;

  [[nodiscard]] std::vector<MixerShape> Extra(std::int64_t ratio) const {
    if (ratio != kPickedRatio && ratio != kCoarseRatio) return {};
    MlaShape rows = mla;
    rows.window = 0;
    rows.ratio = ratio;
    if (ratio == kCoarseRatio) return {rows, Compressor(ratio, mla.value_dim)};
    IndexerShape keys = indexer;
    keys.ratio = ratio;
    return {rows, keys, Compressor(ratio, mla.value_dim), Compressor(ratio, keys.head_dim)};
  }
};

std::vector<std::int64_t> ReadRatios(const ConfigObject& config, std::int64_t layers) {
  std::vector<std::int64_t> ratios = config.IntList("compress_ratios", {0, kCoarseRatio});
  if (ratios.size() < static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "compress_ratios",
                absl::StrFormat("expected an entry for each of num_hidden_layers = %d", layers));
  }
  ratios.resize(static_cast<std::size_t>(layers), 0);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i] <= 1 || ratios[i] == kPickedRatio || ratios[i] == kCoarseRatio) continue;
    config.FailValue(ConfigFault::kUnsupported, absl::StrFormat("compress_ratios[%d]", i),
                     absl::StrFormat("%d", ratios[i]), "known: 0, 1, 4, 128");
  }
  return ratios;
}

}  // namespace

void ReadDeepseekV4(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  const std::int64_t layers = ReadLayerCount(config);
  const std::vector<std::int64_t> ratios = ReadRatios(config, layers);
  Compressed compressed{ReadWindowed(config), {}};
  if (std::find(ratios.begin(), ratios.end(), kPickedRatio) != ratios.end()) {
    compressed.indexer.heads = config.Int("index_n_heads", kHeadsRange);
    compressed.indexer.head_dim = config.Int("index_head_dim", kDimRange);
    compressed.indexer.top_k = config.Int("index_topk", kTokensRange);
  }
  const MlpShape mlp = ReadExperts(config, {});
  for (const std::int64_t ratio : ratios) {
    AddLayer(compressed.mla, mlp, model.layers);
    model.layers.back().extra = compressed.Extra(ratio);
  }
  ModelLayer predicting = model.layers.back();
  predicting.extra.clear();
  AddMtpLayers(config, "num_nextn_predict_layers", predicting, model);
}

}  // namespace kvasir
