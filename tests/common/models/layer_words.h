// A model's layers in a few words, in the terms of the reference: "16 full, 48 sliding", "24 MLA, 69 KDA".
#ifndef KVASIR_TESTS_COMMON_MODELS_LAYER_WORDS_H_
#define KVASIR_TESTS_COMMON_MODELS_LAYER_WORDS_H_

#include <cstdint>
#include <string>

#include "common/models/model_description.h"

namespace kvasir::testing {

// Counts by kind, in a fixed order: full, sliding, chunked, MLA, swa-MLA, C4-MLA, C128-MLA, indexer, KDA,
// GDN, mamba1, mamba2, lightning, short conv, cross, encoder, none. Compressors go with their cache and are
// not counted.
[[nodiscard]] std::string KindsText(const ModelDescription& model);
// "8x128" of the first layer that keeps rows; "" if there is none.
[[nodiscard]] std::string HeadsText(const ModelDescription& model);
// The window or chunk of the first layer that has one.
[[nodiscard]] std::int64_t WindowOf(const ModelDescription& model);
// "conv 3x8192 state 32x128x128 f32" of the first recurrent layer; "auto" follows the convolution.
[[nodiscard]] std::string StatesText(const ModelDescription& model);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_COMMON_MODELS_LAYER_WORDS_H_
