#include "tests/common/models/layer_words.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "common/models/cache_facts.h"

namespace kvasir::testing {
namespace {

constexpr std::array kOrder = {"full",      "sliding",    "chunked", "MLA",     "swa-MLA", "C4-MLA",
                               "C128-MLA",  "indexer",    "KDA",     "GDN",     "mamba1",  "mamba2",
                               "lightning", "short conv", "cross",   "encoder", "none"};

struct Word {
  std::string operator()(const AttentionShape& s) const {
    return s.window > 0 ? "sliding" : s.chunk > 0 ? "chunked" : "full";
  }
  std::string operator()(const MlaShape& s) const {
    if (s.window > 0) return "swa-MLA";
    return s.ratio > 1 ? "C" + std::to_string(s.ratio) + "-MLA" : "MLA";
  }
  std::string operator()(const IndexerShape&) const { return "indexer"; }
  std::string operator()(const CompressorShape&) const { return ""; }
  std::string operator()(const HiddenStateShape&) const { return ""; }
  std::string operator()(const CrossAttentionShape&) const { return "cross"; }
  std::string operator()(const EncoderAttentionShape&) const { return "encoder"; }
  std::string operator()(const KdaShape&) const { return "KDA"; }
  std::string operator()(const GatedDeltaShape&) const { return "GDN"; }
  std::string operator()(const Mamba1Shape&) const { return "mamba1"; }
  std::string operator()(const Mamba2Shape&) const { return "mamba2"; }
  std::string operator()(const LightningShape&) const { return "lightning"; }
  std::string operator()(const ShortConvShape&) const { return "short conv"; }
  std::string operator()(const NoMixer&) const { return "none"; }
};

std::vector<MixerShape> AllShapes(const ModelDescription& model) {
  std::vector<MixerShape> out;
  for (const ModelLayer& layer : model.layers) {
    out.push_back(layer.mixer);
    out.insert(out.end(), layer.extra.begin(), layer.extra.end());
  }
  return out;
}

std::string Sides(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t side : shape) out += (out.empty() ? "" : "x") + std::to_string(side);
  return out;
}

// The dtype that a shape gives its recurrent state; nullopt where it follows the convolution.
struct StateDType {
  std::optional<DType> operator()(const KdaShape&) const { return DType::kF32; }
  std::optional<DType> operator()(const Mamba1Shape& s) const { return s.state_dtype; }
  std::optional<DType> operator()(const Mamba2Shape& s) const { return s.state_dtype; }
  std::optional<DType> operator()(const GatedDeltaShape& s) const { return s.state_dtype; }
  template <typename Other>
  std::optional<DType> operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::string KindsText(const ModelDescription& model) {
  std::vector<std::string> words;
  for (const MixerShape& shape : AllShapes(model)) words.push_back(std::visit(Word{}, shape));
  std::string out;
  for (const std::string word : kOrder) {
    const auto count = std::count(words.begin(), words.end(), word);
    if (count > 0) out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + word;
  }
  return out;
}

std::string HeadsText(const ModelDescription& model) {
  for (const MixerShape& shape : AllShapes(model)) {
    if (const auto* s = std::get_if<AttentionShape>(&shape))
      return std::to_string(s->kv_heads) + "x" + std::to_string(s->head_dim);
    if (const auto* s = std::get_if<MlaShape>(&shape))
      return "1x" + std::to_string(s->kv_lora_rank + s->rope_dim);
  }
  return "";
}

std::int64_t WindowOf(const ModelDescription& model) {
  for (const MixerShape& shape : AllShapes(model)) {
    if (const auto* s = std::get_if<AttentionShape>(&shape); s != nullptr && s->window + s->chunk > 0)
      return s->window + s->chunk;
    if (const auto* s = std::get_if<MlaShape>(&shape); s != nullptr && s->window > 0) return s->window;
  }
  return 0;
}

std::string StatesText(const ModelDescription& model) {
  for (const MixerShape& shape : AllShapes(model)) {
    const auto facts = CacheFactsOf(shape, model.dtype, 1);
    if (!facts.ok() || facts->states.empty()) continue;
    std::string out;
    for (const StateFact& state : facts->states) {
      out += out.empty() ? "" : " ";
      out += state.name == "conv" ? "conv " : "state ";
      out += Sides(state.shape);
      if (state.name == "conv") continue;
      const std::optional<DType> dtype = std::visit(StateDType{}, shape);
      out += dtype.has_value() ? " " + std::string(DTypeName(*dtype)) : " auto";
    }
    return out;
  }
  return "";
}

}  // namespace kvasir::testing
