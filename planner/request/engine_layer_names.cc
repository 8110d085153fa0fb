#include "planner/request/engine_layer_names.h"

#include <variant>

namespace kvasir {
namespace {

// What follows the layer's number in the engine's name of a cache.
struct NameOfMixer {
  bool deepseek_v4 = false;
  std::string operator()(const AttentionShape&) const { return "self_attn.attn"; }
  std::string operator()(const MlaShape& s) const {
    if (!deepseek_v4) return "self_attn.attn";
    return s.window > 0 ? "attn.swa_cache" : "attn.mla_attn";
  }
  std::string operator()(const IndexerShape&) const {
    return deepseek_v4 ? "attn.indexer.k_cache" : "self_attn.indexer.k_cache";
  }
  std::string operator()(const CompressorShape&) const { return "attn.compressor.state_cache"; }
  std::string operator()(const CrossAttentionShape&) const { return "encoder_attn.attn"; }
  std::string operator()(const EncoderAttentionShape&) const { return "self_attn.attn"; }
  std::string operator()(const HiddenStateShape&) const { return "hidden_states"; }
  std::string operator()(const KdaShape&) const { return "self_attn.kda"; }
  std::string operator()(const GatedDeltaShape&) const { return "linear_attn"; }
  std::string operator()(const LightningShape&) const { return "self_attn.linear"; }
  std::string operator()(const ShortConvShape&) const { return "short_conv"; }
  std::string operator()(const NoMixer&) const { return ""; }
  template <class Mamba>
  std::string operator()(const Mamba&) const {
    return "mixer";
  }
};

}  // namespace

std::string CacheNameOf(const MixerShape& mixer, bool deepseek_v4) {
  return std::visit(NameOfMixer{deepseek_v4}, mixer);
}

std::string LayerStemOf(const ModelDescription& model) {
  if (model.encoder.has_value()) return "model.decoder.layers.";
  return model.multimodal ? "language_model.model.layers." : "model.layers.";
}

}  // namespace kvasir
