// How long a sequence the engine lets a model have, from the model's rotary embedding and its own claim, and
// what
// --max-model-len makes of it. Source: _get_and_verify_max_len in vLLM's vllm/config/model.py.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_LENGTH_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_LENGTH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/models/model_description.h"
#include "planner/request/engine_settings.h"

namespace kvasir {

// Tokens. A stretched embedding (YaRN, linear, dynamic) stretches the limit: YaRN from the length that it was
// trained for, the others from what the model claims, which for Gemma-3 is stretched already.
[[nodiscard]] std::int64_t EngineLengthLimit(const ModelDescription& model);

// What the engine takes where the command is silent: the limit, but of a LongRoPE model the length before
// stretching.
[[nodiscard]] std::int64_t EngineLengthUnsaid(const ModelDescription& model);

// Sets auto_fit and max_model_len; VALUE_OUT_OF_RANGE where the engine raises.
[[nodiscard]] absl::Status SetEngineLength(const EngineLaunch& launch, EngineSettings& settings);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_LENGTH_H_
