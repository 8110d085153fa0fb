// LongCat-Flash: each block has two MLA mixers with a dense MLP after each, and experts beside them. A block
// is one layer here, its second mixer a further cache; the two dense MLPs count as one of twice the width.
// Experts that compute nothing (zero_expert_num) have no weights.
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {

void ReadLongcat(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 131072, .context = 131072}, model);
  model.rope = ReadRope(config);
  MlaShape mla;
  mla.heads = config.IntOr("num_attention_heads", kHeadsRange, 64);
  mla.q_lora_rank = config.IntOr("q_lora_rank", kDimOrNoneRange, 1536);
  mla.kv_lora_rank = config.IntOr("kv_lora_rank", kDimRange, 512);
  mla.nope_dim = config.IntOr("qk_nope_head_dim", kDimRange, 128);
  mla.rope_dim = config.IntOr("qk_rope_head_dim", kDimRange, 64);
  mla.value_dim = config.IntOr("v_head_dim", kDimRange, 128);
  MlpShape mlp = ReadExperts(
      config, {.per_token = config.FirstOf({"moe_topk", "num_experts_per_tok"}),
               .shared = "",
               .intermediate = config.FirstOf({"expert_ffn_hidden_size", "moe_intermediate_size"})});
  mlp.intermediate = 2 * config.Int(config.FirstOf({"ffn_hidden_size", "intermediate_size"}), kDimRange);
  const std::int64_t layers = config.Int(config.FirstOf({"num_layers", "num_hidden_layers"}), kLayersRange);
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(mla, mlp, model.layers);
    model.layers.back().extra = {mla};
  }
}

}  // namespace kvasir
