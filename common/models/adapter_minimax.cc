// MiniMax-M3: grouped-query attention, sparse in most layers: those keep one key a token for picking blocks.
// MiniMax-Text-01 and M1: lightning attention, with full attention where attn_type_list says 1.
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

// The layers that pick blocks, and what they pick with.
struct Sparse {
  std::vector<std::int64_t> layers;  // 1 where sparse
  IndexerShape indexer;
};

Sparse ReadSparse(const ConfigObject& config, std::int64_t layers) {
  Sparse sparse;
  sparse.layers.assign(static_cast<std::size_t>(layers), 0);
  const auto fields = config.ObjectIf("sparse_attention_config");
  if (!fields.has_value() || !fields->BoolOr("use_sparse_attention", true)) return sparse;
  sparse.indexer.heads = fields->Int("sparse_num_index_heads", kHeadsRange);
  sparse.indexer.head_dim = fields->Int("sparse_index_dim", kDimRange);
  sparse.indexer.top_k = fields->Int("sparse_topk_blocks", kTokensRange);
  sparse.indexer.block = fields->Int("sparse_block_size", kTokensRange);
  sparse.indexer.fp8_keys = false;
  std::vector<std::int64_t> freq = fields->IntList("sparse_attention_freq", {0, 1});
  if (freq.size() != sparse.layers.size()) {
    fields->Fail(ConfigFault::kContradiction, "sparse_attention_freq",
                 absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    return sparse;
  }
  sparse.layers = std::move(freq);
  return sparse;
}

}  // namespace

void ReadMinimaxM3(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const std::int64_t layers = ReadLayerCount(config);
  const LayerMlps mlps = ReadMlps(config,
                                  {.experts = "num_local_experts",
                                   .intermediate = "intermediate_size",
                                   .shared_intermediate = "shared_intermediate_size"},
                                  layers, "dense_intermediate_size");
  const Sparse sparse = ReadSparse(config, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(attention, mlps.At(i), model.layers);
    if (sparse.layers[static_cast<std::size_t>(i)] == 1) model.layers.back().extra = {sparse.indexer};
  }
  ModelLayer predicting = model.layers.back();
  predicting.extra.clear();
  AddMtpLayers(config, "num_nextn_predict_layers", predicting, model);
}

void ReadMinimaxText01(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {}, model);
  model.rope = ReadRope(config);
  const AttentionShape attention = ReadAttention(config, model.hidden);
  const LightningShape lightning{.heads = attention.heads, .head_dim = attention.head_dim};
  const MlpShape mlp = ReadExperts(config, {.experts = "num_local_experts",
                                            .shared = "",
                                            .intermediate = "intermediate_size",
                                            .shared_intermediate = "shared_intermediate_size"});
  const std::int64_t layers = ReadLayerCount(config);
  const std::vector<std::int64_t> types = config.IntList("attn_type_list", {0, 1});
  if (types.size() != static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "attn_type_list",
                absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    return;
  }
  for (const std::int64_t type : types) {
    AddLayer(type == 1 ? MixerShape(attention) : MixerShape(lightning), mlp, model.layers);
  }
}

}  // namespace kvasir
