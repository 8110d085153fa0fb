// Small targets and drafts in every variant that the passes know.
#ifndef KVASIR_TESTS_WORKER_CPU_SMALL_MODELS_H_
#define KVASIR_TESTS_WORKER_CPU_SMALL_MODELS_H_

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "common/models/model_description.h"
#include "tests/testing/model_ranks.h"

namespace kvasir::testing {

struct ModelVariant {
  std::string name;
  ModelDescription target;
  ModelDescription draft;
};
void PrintTo(const ModelVariant& v, std::ostream* out);

// "plain" first: q-LoRA, RoPE, a YaRN draft with a Markov head.
[[nodiscard]] std::vector<ModelVariant> AllModelVariants();
[[nodiscard]] ModelVariant PlainModels();
// DeepSeek-V3's routing in all but the target's first layer, and in the draft's last.
[[nodiscard]] ModelVariant SigmoidExperts();

// Options for one variant with `tp` tensor and `dcp` context ranks.
[[nodiscard]] ModelRanksOptions OptionsOf(const ModelVariant& variant, std::int64_t tp, std::int64_t dcp,
                                          DType dtype);

// `count` token ids below `vocab`, the same for the same seed.
[[nodiscard]] std::vector<std::int32_t> RandomTokens(std::size_t count, std::int64_t vocab, unsigned seed);

// `count` block ids, in no order, none 0 and none twice.
[[nodiscard]] std::vector<std::int64_t> ShuffledBlocks(std::size_t count, std::int64_t first);

// Largest difference, relative to the largest wanted magnitude; infinity where a value is not finite.
template <class T>
double RelativeDifference(std::span<const float> got, std::span<const T> want);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_CPU_SMALL_MODELS_H_
