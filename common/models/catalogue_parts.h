// What the families' parts of the catalogue are made with.
#ifndef KVASIR_COMMON_MODELS_CATALOGUE_PARTS_H_
#define KVASIR_COMMON_MODELS_CATALOGUE_PARTS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/models/model_description.h"

namespace kvasir::catalogue {

// One entry: what it is called here and on the hub, and how it is made. `make` leaves the name to the caller.
struct Entry {
  std::string_view name;      // "kimi-k3"
  std::string_view hub_name;  // "moonshotai/Kimi-K3"
  ModelDescription (*make)();
};

// The families' parts, in no order.
[[nodiscard]] std::span<const Entry> DeepseekModels();  // catalogue_deepseek.cc
[[nodiscard]] std::span<const Entry> DemoModels();      // catalogue_demo.cc
[[nodiscard]] std::span<const Entry> DraftModels();     // catalogue_drafts.cc
[[nodiscard]] std::span<const Entry> GemmaModels();     // catalogue_gemma.cc
[[nodiscard]] std::span<const Entry> GlmModels();       // catalogue_glm.cc
[[nodiscard]] std::span<const Entry> HybridModels();    // catalogue_hybrid.cc
[[nodiscard]] std::span<const Entry> KimiModels();      // catalogue_kimi.cc
[[nodiscard]] std::span<const Entry> LlamaModels();     // catalogue_llama.cc
[[nodiscard]] std::span<const Entry> MoeModels();       // catalogue_moe.cc
[[nodiscard]] std::span<const Entry> QwenModels();      // catalogue_qwen.cc

// The numbers that every model has.
struct Frame {
  std::string_view architecture;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t context = 0;
  double eps = 1e-6;
  double theta = 10000;
  bool tied = false;
  bool multimodal = false;
};
[[nodiscard]] ModelDescription Make(const Frame& frame);

[[nodiscard]] AttentionShape Heads(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim);
[[nodiscard]] AttentionShape Windowed(AttentionShape attention, std::int64_t window);
[[nodiscard]] MlpShape Dense(std::int64_t intermediate);
// `experts` chosen as DeepSeek-V3 does: sigmoid, a correction bias, normalised weights times `scale`.
[[nodiscard]] MlpShape BySigmoid(MlpShape experts, double scale);

// Appends `count` layers of one mixer and MLP.
void Add(ModelDescription& model, std::int64_t count, const MixerShape& mixer, const MlpShape& mlp);
// `count` layers, of which every `period`-th is `full` and the others `other`.
void AddAlternating(ModelDescription& model, std::int64_t count, std::int64_t period, const MixerShape& other,
                    const MixerShape& full, const MlpShape& mlp);
// One layer of multi-token prediction, like the last layer.
void PredictLikeLast(ModelDescription& model);

// fp8 with a scale for each 128 x 128 block, the head left out.
[[nodiscard]] WeightQuantisation Fp8Blocks();
// Experts alone, in groups of 32.
[[nodiscard]] WeightQuantisation FourBitExperts(std::string_view method, std::int64_t scale_bits);
[[nodiscard]] Rope Llama3Rope(double theta, double factor, double high_freq_factor);

}  // namespace kvasir::catalogue

#endif  // KVASIR_COMMON_MODELS_CATALOGUE_PARTS_H_
