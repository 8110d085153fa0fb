// DeepSeek-V2, V3, R1 and Kimi-K2: MLA in every layer, experts after the first dense layers. V3.2 and GLM-5
// add sparse attention, whose indexer keeps one key a token in the layers that build one; the others reuse
// its pick.
#include <algorithm>
#include <cstddef>
#include <string>

#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// Which layers build an indexer. Layers of multi-token prediction always do.
class IndexerLayers {
 public:
  explicit IndexerLayers(const ConfigObject& config)
      : pattern_(config.TextOr("index_topk_pattern", "")),
        every_(config.IntOr("index_topk_freq", {1, kLayersMax}, 1)),
        offset_(config.IntOr("index_skip_topk_offset", {0, kLayersMax}, 2)) {}

  [[nodiscard]] bool Builds(std::int64_t layer) const {
    if (layer < static_cast<std::int64_t>(pattern_.size()))
      return pattern_[static_cast<std::size_t>(layer)] != 'S';
    return std::max<std::int64_t>(layer - offset_ + 1, 0) % every_ == 0;
  }

 private:
  std::string pattern_;  // a letter a layer; S skips
  std::int64_t every_;
  std::int64_t offset_;
};

IndexerShape ReadIndexer(const ConfigObject& config) {
  IndexerShape indexer;
  indexer.heads = config.Int("index_n_heads", kHeadsRange);
  indexer.head_dim = config.Int("index_head_dim", kDimRange);
  indexer.top_k = config.Int("index_topk", kTokensRange);
  return indexer;
}

}  // namespace

void ReadDeepseek(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  const MlaShape mla = ReadMla(config);
  const std::int64_t layers = ReadLayerCount(config);
  const LayerMlps mlps = ReadMlps(config, {}, layers);
  const bool sparse = config.Has("index_topk");
  const IndexerShape indexer = sparse ? ReadIndexer(config) : IndexerShape{};
  const IndexerLayers builds(config);
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(mla, mlps.At(i), model.layers);
    if (sparse && builds.Builds(i)) model.layers.back().extra = {indexer};
  }
  ModelLayer predicting = model.layers.back();
  if (sparse) predicting.extra = {indexer};
  AddMtpLayers(config, "num_nextn_predict_layers", predicting, model);
}

}  // namespace kvasir
