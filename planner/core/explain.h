// Why a plan is as it is: each layer's group, each size, the bound of the capacity and every byte's owner.
#ifndef KVASIR_PLANNER_CORE_EXPLAIN_H_
#define KVASIR_PLANNER_CORE_EXPLAIN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/plan/plan.h"
#include "planner/core/report.h"

namespace kvasir {

enum class ExplainTopic : std::int8_t { kGroup, kSize, kRollback, kCapacity, kBytes, kGraph, kRemedy };
// group | size | rollback | capacity | bytes | graph | remedy
[[nodiscard]] std::string_view ExplainTopicName(ExplainTopic topic);

struct ExplainLine {
  ExplainTopic topic = ExplainTopic::kGroup;
  std::string subject;  // a layer, group, pool, context length or owner
  std::string text;     // one sentence
  friend bool operator==(const ExplainLine&, const ExplainLine&) = default;
};

// The lengths at which a plan's capacity is explained: those of the objective below its context, and that.
[[nodiscard]] std::vector<std::int64_t> ExplainedContexts(const Plan& plan);

// From a plan alone, for example one that was read back from its text. VerifyPlan must accept it.
[[nodiscard]] std::vector<ExplainLine> ExplainPlan(const Plan& plan);
// With what the planner considered and did not choose.
[[nodiscard]] std::vector<ExplainLine> ExplainPlan(const Plan& plan, const Report& report);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_EXPLAIN_H_
