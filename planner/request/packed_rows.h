// Attention rows that the engine's backends pack: quantised with scales beside them, or of a few bits
// (the customize_spec of vLLM's backends).
#ifndef KVASIR_PLANNER_REQUEST_PACKED_ROWS_H_
#define KVASIR_PLANNER_REQUEST_PACKED_ROWS_H_

#include <string>

#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

// The engine's quantisation of a word of --kv-cache-dtype; kNone for plain rows and unknown words.
[[nodiscard]] vllm::QuantMode QuantModeOf(const std::string& word);

// What the backends make of an attention spec by its kv_quant_mode; plain rows stay as they are.
void PackRows(vllm::EngineSpec& spec);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_PACKED_ROWS_H_
