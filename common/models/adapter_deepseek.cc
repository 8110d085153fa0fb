// DeepSeek-V2, V3, R1 and Kimi-K2: MLA in every layer, a mixture of experts after the first dense layers.
// Kimi-K2.5 and later wrap the same fields in `text_config`. Layers of multi-token prediction
// (num_nextn_predict_layers) belong to no pass that we run and are left out.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"

namespace kvasir {

void ReadDeepseek(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, "rms_norm_eps", model);
  model.rope = ReadRope(config);
  if (config.Has("index_topk")) {
    config.Fail(
        ConfigFault::kUnsupported, "index_topk",
        "sparse attention keeps an indexer cache in each layer, which no description of ours carries");
  }
  const MlaShape mla = ReadMla(config);
  const LayerMlps mlps(config, {"n_routed_experts", "num_experts_per_tok", "n_shared_experts"});
  const std::int64_t layers = config.Int("num_hidden_layers", kLayersRange);
  for (std::int64_t i = 0; i < layers; ++i) {
    model.layers.push_back({static_cast<std::int32_t>(i), mla, mlps.At(i)});
  }
}

}  // namespace kvasir
