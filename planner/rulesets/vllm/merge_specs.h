// One spec for a group. The class of the first spec decides which rule runs; the engine refuses a merge with
// an assertion, which optimised Python removes. Here a refusal is a value that names what differs.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_MERGE_SPECS_H_
#define KVASIR_PLANNER_RULESETS_VLLM_MERGE_SPECS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// Which of the engine's merge functions refused.
enum class MergeRule : std::int8_t { kEqual, kFull, kMla, kRswa, kSinkFull, kSlidingMla };
[[nodiscard]] std::string_view MergeRuleName(MergeRule rule);
// The rule that runs where the first spec is of `kind`.
[[nodiscard]] MergeRule RuleOf(SpecKind kind);

// The engine sees a refusal as AssertionError, and takes it for "cannot merge". Layers are indices of the
// case, -1 where only specs were given.
struct CannotMerge {
  MergeRule rule = MergeRule::kEqual;
  std::string_view field =
      {};                  // the first that differs: "head_size"; "kind" for a class that the rule excludes
  std::int32_t first = 0;  // spec ids
  std::int32_t other = 0;
  std::int32_t first_layer = -1;
  std::int32_t other_layer = -1;
};

// ValueError: two recorded windows. It aborts planning where the engine asks whether all layers are uniform.
struct MergeRaises {
  std::string_view field = {};  // "sliding_window", "attention_chunk_size"
  std::int32_t first = 0;       // spec ids
  std::int32_t other = 0;
  std::int32_t first_layer = -1;
  std::int32_t other_layer = -1;
};

using MergeResult = std::variant<EngineSpec, CannotMerge, MergeRaises>;

// Requires at least one id; repeated ids change nothing. The merged spec is not interned. Never depends on
// more of the order than which spec is first.
[[nodiscard]] MergeResult MergeSpecs(const SpecTable& table, const std::vector<std::int32_t>& ids);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_MERGE_SPECS_H_
