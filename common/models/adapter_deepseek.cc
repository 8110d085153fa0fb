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

// How experts are chosen. What a file leaves out is as the family's classes have it (transformers,
// configuration_deepseek_v2.py and _v3.py): V2 takes the best by softmax, of all or of the best groups, and
// leaves their weights; V3 and what follows it choose by sigmoid and bias ("noaux_tc").
void ReadRouting(const ConfigObject& config, bool v2, MlpShape& mlp) {
  mlp.scoring = ScoringOf(config.TextOr("scoring_func", v2 ? "softmax" : "sigmoid"));
  if (mlp.scoring == ExpertScoring::kUnstated) return;
  const std::string method = config.TextOr("topk_method", v2 ? "greedy" : "noaux_tc");
  mlp.correction_bias = method == "noaux_tc";
  if (method != "greedy") {
    mlp.groups = config.IntOr("n_group", kDimRange, v2 ? 1 : 8);
    mlp.groups_kept = config.IntOr("topk_group", kDimRange, v2 ? 1 : 4);
  }
  mlp.normalise = config.BoolOr("norm_topk_prob", !v2);
  mlp.routed_scale = config.RealOr("routed_scaling_factor", kRoutedScaleRange, v2 ? 1.0 : 2.5);
}

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
  LayerMlps mlps = ReadMlps(config, {}, layers);
  if (mlps.experts.experts > 0) {
    ReadRouting(config, model.architecture == "DeepseekV2ForCausalLM", mlps.experts);
  }
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
