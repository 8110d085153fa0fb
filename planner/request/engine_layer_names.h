// What the engine calls the caches of a layer: its stem, its number, and what each mixer calls its own.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_LAYER_NAMES_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_LAYER_NAMES_H_

#include <string>

#include "common/models/model_description.h"

namespace kvasir {

// What stands before the layer's number: "model.layers.".
[[nodiscard]] std::string LayerStemOf(const ModelDescription& model);

// What follows the number and a dot: "self_attn.attn"; empty for no mixer.
[[nodiscard]] std::string CacheNameOf(const MixerShape& mixer, bool deepseek_v4);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_LAYER_NAMES_H_
