// What planning can answer. All three are successful answers: none is an absl::Status.
#ifndef KVASIR_PLANNER_CORE_OUTCOME_H_
#define KVASIR_PLANNER_CORE_OUTCOME_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/units.h"
#include "common/plan/plan.h"
#include "planner/core/refusal.h"
#include "planner/core/report.h"

namespace kvasir {

struct Planned {
  Plan plan;
  std::string text;     // canonical
  std::string plan_id;  // of the text
  Report report;
};

// A change of the request that was planned again and fits.
struct FitRemedy {
  std::string field;          // of the request: "context_tokens"
  std::string value;          // "983040", "replay"
  std::string text;           // full clause with units
  std::int64_t requests = 0;  // sequences of the (then) context that are admitted
  friend bool operator==(const FitRemedy&, const FitRemedy&) = default;
};

struct DoesNotFit {
  std::int64_t context_tokens = 0;
  std::int64_t min_requests = 0;
  Bytes given;                              // per rank
  Bytes needed;                             // per rank: the least arena that would fit
  Bytes shortfall;                          // needed - given
  std::string bound_by;                     // the pool that asks for the most bytes
  Bytes bound_by_bytes;                     // what it asks for
  std::int64_t longest_context_tokens = 0;  // that fits with min_requests; 0: none
  std::vector<FitRemedy> remedies;          // best first
  friend bool operator==(const DoesNotFit&, const DoesNotFit&) = default;
};

struct Refusals {
  std::vector<Refusal> refusals;  // at least one; sorted
  friend bool operator==(const Refusals&, const Refusals&) = default;
};

using PlanOutcome = std::variant<Planned, DoesNotFit, Refusals>;

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_OUTCOME_H_
