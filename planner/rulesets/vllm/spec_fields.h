// The fields that merging compares, by name, so that a refusal can print both values.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_SPEC_FIELDS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_SPEC_FIELDS_H_

#include <string>
#include <string_view>

#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::vllm {

// The first field in which two specs differ, of those that every attention kind has and the engine compares
// in each merge; empty if none.
[[nodiscard]] std::string_view FirstDifferentAttentionField(const EngineSpec& a, const EngineSpec& b);

// The first field of all in which two specs differ; empty if they are equal.
[[nodiscard]] std::string_view FirstDifferentField(const EngineSpec& a, const EngineSpec& b);

// The value of a field as text: "128", "none", "uint8". "?" for a name that no field has.
[[nodiscard]] std::string FieldText(const EngineSpec& spec, std::string_view field);

// " num_kv_heads=8 dtype=uint8": the fields that differ from the kind's defaults, in one order.
void AppendFields(const EngineSpec& spec, std::string& text);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_SPEC_FIELDS_H_
