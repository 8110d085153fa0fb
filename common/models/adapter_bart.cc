// Encoders with a decoder that attends to them: BART and Whisper. The decoder's layers have their own
// attention and a second one over the encoder's output (two caches); the encoder keeps nothing.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

struct Lengths {
  std::int64_t encoder;
  std::int64_t decoder;
};

void ReadDecoder(const ConfigObject& config, const Lengths& lengths, ModelDescription& model) {
  model.hidden = config.Int("d_model", kDimRange);
  model.vocab = config.Int("vocab_size", kDimRange);
  model.context = lengths.decoder;
  model.rms_eps = 1e-5;  // of LayerNorm, which these models have instead
  model.tied_embedding = true;
  AttentionShape own;
  own.heads = own.kv_heads = config.Int("decoder_attention_heads", kHeadsRange);
  own.head_dim = own.value_dim = std::max<std::int64_t>(1, model.hidden / own.heads);
  if (model.hidden % own.heads != 0) {
    config.Fail(ConfigFault::kContradiction, "decoder_attention_heads",
                absl::StrFormat("d_model = %d is no multiple of it", model.hidden));
  }
  const CrossAttentionShape cross{own.heads, own.kv_heads, own.head_dim, own.value_dim, lengths.encoder};
  MlpShape mlp = ReadDense(config, "decoder_ffn_dim");
  mlp.gated = false;
  const std::int64_t layers = config.Int("decoder_layers", kLayersRange);
  for (std::int64_t i = 0; i < layers; ++i) {
    AddLayer(own, mlp, model.layers);
    model.layers.back().extra = {cross};
  }
  EncoderShape encoder;
  encoder.layers = config.Int("encoder_layers", kLayersRange);
  encoder.heads = config.Int("encoder_attention_heads", kHeadsRange);
  encoder.head_dim = std::max<std::int64_t>(1, model.hidden / encoder.heads);
  encoder.intermediate = config.Int("encoder_ffn_dim", kDimRange);
  encoder.tokens = lengths.encoder;
  model.encoder = encoder;
}

}  // namespace

void ReadBart(const ConfigObject& config, ModelDescription& model) {
  const std::int64_t tokens = config.IntOr("max_position_embeddings", kTokensRange, 1024);
  ReadDecoder(config, {tokens, tokens}, model);
}

void ReadWhisper(const ConfigObject& config, ModelDescription& model) {
  const Lengths lengths{config.IntOr("max_source_positions", kTokensRange, 1500),
                        config.IntOr("max_target_positions", kTokensRange, 448)};
  ReadDecoder(config, lengths, model);
  model.multimodal = true;
}

}  // namespace kvasir
