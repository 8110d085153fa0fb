// What grouping leaves behind beside the groups: the engine's log lines, and the first merge whose refusal
// optimised Python would not have made.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_GROUPING_NOTES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_GROUPING_NOTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/merge_specs.h"

namespace kvasir::vllm {

// What a merge that is refused by assertion becomes where assertions are compiled out.
enum class WithoutAssert : std::int8_t {
  kSame,            // the refusal is an explicit raise
  kMerges,          // the first spec's values are taken for all
  kValueError,      // two windows, now seen together
  kAttributeError,  // a spec lacks a field that the rule reads
  kHashSeed,        // an element of a set of strings is taken: PYTHONHASHSEED picks it
};

// Requires that MergeSpecs(table, ids) gave `refusal`.
[[nodiscard]] WithoutAssert MergeWithoutAssert(const SpecTable& table, const std::vector<std::int32_t>& ids,
                                               const CannotMerge& refusal);

struct GroupingNotes {
  struct Divergence {
    WithoutAssert outcome = WithoutAssert::kSame;
    CannotMerge refusal = {};
  };
  std::vector<std::string> log = {};
  std::optional<Divergence> divergence =
      {};  // of python -O; the first, for what follows it never happens there

  // Notes a refused merge.
  void Refused(const SpecTable& table, const std::vector<std::int32_t>& ids, const CannotMerge& refusal) {
    if (divergence.has_value()) return;
    const WithoutAssert outcome = MergeWithoutAssert(table, ids, refusal);
    if (outcome != WithoutAssert::kSame) divergence = {outcome, refusal};
  }
};

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_GROUPING_NOTES_H_
