// A table of what public models' layers are, for comparison with what is read.
#ifndef KVASIR_TESTS_COMMON_MODELS_EXPECTED_LAYERS_H_
#define KVASIR_TESTS_COMMON_MODELS_EXPECTED_LAYERS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace kvasir::testing {

struct ExpectedLayers {
  std::string_view folder = "";  // of the shared configurations
  std::int64_t layers = 0;
  std::string_view kinds = "";   // as KindsText of layer_words.h gives them
  std::string_view heads = "";   // of the first layer with rows: key-value heads x width; 1x576 for MLA
  std::int64_t window = 0;       // or chunk
  std::string_view states = "";  // of the first recurrent layer
  std::int64_t mtp = 0;          // layers of multi-token prediction
  std::int64_t block = 0;        // of a draft
};

// By folder.
[[nodiscard]] std::span<const ExpectedLayers> AllExpectedLayers();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_COMMON_MODELS_EXPECTED_LAYERS_H_
