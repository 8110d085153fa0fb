// Gemma-2 to Gemma-4.
#include <variant>

#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

ModelDescription Gemma2(std::int64_t hidden, std::int64_t layers, const AttentionShape& attention,
                        std::int64_t intermediate) {
  ModelDescription m = Make({.architecture = "Gemma2ForCausalLM",
                             .hidden = hidden,
                             .vocab = 256000,
                             .context = 8192,
                             .tied = true});
  AddAlternating(m, layers, 2, Windowed(attention, 4096), attention, Dense(intermediate));
  return m;
}

ModelDescription Gemma3(std::int64_t hidden, std::int64_t layers, const AttentionShape& attention,
                        std::int64_t intermediate) {
  ModelDescription m = Make({.architecture = "Gemma3ForConditionalGeneration",
                             .hidden = hidden,
                             .vocab = 262208,
                             .context = 131072,
                             .theta = 1e6,
                             .tied = true,
                             .multimodal = true});
  m.rope.kind = RopeKind::kLinear;
  m.rope.factor = 8;
  m.rope.local_theta = 10000;
  AddAlternating(m, layers, 6, Windowed(attention, 1024), attention, Dense(intermediate));
  return m;
}

// The layers from `first` on read the caches of the last layers before it, each of its own kind.
void ShareFrom(ModelDescription& m, std::int32_t first, std::int32_t windowed, std::int32_t full) {
  for (ModelLayer& layer : m.layers) {
    auto& attention = std::get<AttentionShape>(layer.mixer);
    if (layer.index >= first) attention.shares_with = attention.window > 0 ? windowed : full;
  }
}

ModelDescription Gemma3nE4B() {
  ModelDescription m = Make({.architecture = "Gemma3nForConditionalGeneration",
                             .hidden = 2048,
                             .vocab = 262400,
                             .context = 32768,
                             .theta = 1e6,
                             .tied = true,
                             .multimodal = true});
  m.rope.local_theta = 10000;
  m.layer_embedding = 256;
  AddAlternating(m, 35, 5, Windowed(Heads(8, 2, 256), 512), Heads(8, 2, 256), Dense(16384));
  ShareFrom(m, 20, 18, 19);
  return m;
}

ModelDescription Gemma4(const Frame& frame) {
  ModelDescription m = Make(frame);
  m.rope.kind = RopeKind::kProportional;
  m.rope.partial = 0.25;
  m.rope.local_theta = 10000;
  return m;
}

ModelDescription Gemma4Of31B() {
  ModelDescription m = Gemma4({.architecture = "Gemma4ForConditionalGeneration",
                               .hidden = 5376,
                               .vocab = 262144,
                               .context = 262144,
                               .theta = 1e6,
                               .tied = true,
                               .multimodal = true});
  AddAlternating(m, 60, 6, Windowed(Heads(32, 16, 256), 1024), Heads(32, 4, 512), Dense(21504));
  return m;
}

ModelDescription Gemma4E2B() {
  ModelDescription m = Gemma4({.architecture = "Gemma4ForConditionalGeneration",
                               .hidden = 1536,
                               .vocab = 262144,
                               .context = 131072,
                               .theta = 1e6,
                               .tied = true,
                               .multimodal = true});
  m.layer_embedding = 256;
  AddAlternating(m, 35, 5, Windowed(Heads(8, 1, 256), 512), Heads(8, 1, 512), Dense(6144));
  ShareFrom(m, 15, 13, 14);
  for (ModelLayer& layer : m.layers) {
    if (layer.index >= 15) layer.mlp = Dense(12288);
  }
  return m;
}

constexpr Entry kEntries[] = {
    {"gemma-2-9b", "google/gemma-2-9b", [] { return Gemma2(3584, 42, Heads(16, 8, 256), 14336); }},
    {"gemma-2-27b", "google/gemma-2-27b", [] { return Gemma2(4608, 46, Heads(32, 16, 128), 36864); }},
    {"gemma-3-4b", "google/gemma-3-4b-it", [] { return Gemma3(2560, 34, Heads(8, 4, 256), 10240); }},
    {"gemma-3-12b", "google/gemma-3-12b-it", [] { return Gemma3(3840, 48, Heads(16, 8, 256), 15360); }},
    {"gemma-3-27b", "google/gemma-3-27b-it", [] { return Gemma3(5376, 62, Heads(32, 16, 128), 21504); }},
    {"gemma-3n-e4b", "google/gemma-3n-E4B-it", Gemma3nE4B},
    {"gemma-4-31b", "google/gemma-4-31B", Gemma4Of31B},
    {"gemma-4-e2b", "google/gemma-4-E2B", Gemma4E2B},
};

}  // namespace

std::span<const Entry> GemmaModels() { return kEntries; }

}  // namespace kvasir::catalogue
