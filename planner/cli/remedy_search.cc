#include "planner/cli/remedy_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/limits.h"
#include "planner/core/canonical.h"
#include "planner/core/capacity.h"
#include "planner/core/validated.h"
#include "planner/request/backends.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kOffered = 4;

// Flags and what they change.
struct Change {
  std::string flags;
  std::function<void(PlanOptions&)> apply;
};

bool Accepted(const PlanQuestion& question) {
  return std::holds_alternative<Validated>(Validate(Canonicalize(RequestOf(question))));
}

// The block of rules about kernels in the closed list.
bool IsAboutBackends(const Refusal& refusal) {
  return refusal.rule >= RuleId::kBackendUnknown && refusal.rule <= RuleId::kBackendBlockRowsUnsupported;
}

std::vector<Change> BackendChanges(bool has_draft) {
  std::vector<Change> changes;
  for (const BackendFacts& facts : BackendTable()) {
    const std::string name = facts.name;
    if (has_draft) {
      changes.push_back({"--draft-backend " + name, [name](PlanOptions& o) { o.draft_backend = name; }});
    }
    changes.push_back({"--target-backend " + name, [name](PlanOptions& o) { o.target_backend = name; }});
  }
  return changes;
}

std::vector<Change> OtherChanges(const PlanOptions& options) {
  std::vector<Change> changes;
  if (options.dcp > 1) changes.push_back({"--dcp 1", [](PlanOptions& o) { o.dcp = 1; }});
  for (const std::string_view dtype : {"auto", "fp8"}) {
    const std::string word = dtype == "fp8" ? "fp8_e4m3" : "auto";
    if (options.cache_dtype != word) {
      changes.push_back(
          {"--kv-cache-dtype " + std::string(dtype), [word](PlanOptions& o) { o.cache_dtype = word; }});
    }
  }
  return changes;
}

void Try(const PlanQuestion& question, const std::vector<const Change*>& changes,
         std::vector<std::string>& found) {
  PlanQuestion changed = question;
  std::string flags;
  for (const Change* change : changes) {
    change->apply(changed.options);
    flags += (flags.empty() ? "" : " ") + change->flags;
  }
  if (found.size() < kOffered && Accepted(changed)) found.push_back(flags);
}

}  // namespace

std::vector<std::string> FindRemedies(const PlanQuestion& question, const std::vector<Refusal>& refusals) {
  std::vector<std::string> found;
  if (refusals.empty() || !std::all_of(refusals.begin(), refusals.end(), IsAboutBackends)) return found;
  const std::vector<Change> backends = BackendChanges(question.draft.has_value());
  const std::vector<Change> others = OtherChanges(question.options);
  for (const Change& change : backends) Try(question, {&change}, found);
  for (const Change& change : others) Try(question, {&change}, found);
  if (!found.empty()) return found;
  for (const Change& backend : backends) {
    for (const Change& other : others) Try(question, {&backend, &other}, found);
  }
  return found;
}

void AddFitRemedies(const PlanQuestion& question, DoesNotFit& outcome) {
  std::vector<FitRemedy> found;
  const auto try_options = [&](const PlanOptions& options, const std::string& field,
                               const std::string& value) {
    PlanQuestion changed = question;
    changed.options = options;
    const PlanOutcome answer = MakePlan(RequestOf(changed));
    const auto* planned = std::get_if<Planned>(&answer);
    if (planned == nullptr) return;
    const std::int64_t requests = CapacityAt(planned->plan, planned->plan.context_tokens).requests;
    found.push_back(
        {.field = field, .value = value, .text = "set " + field + " to " + value, .requests = requests});
  };
  for (std::int64_t dcp = question.options.dcp + 1;
       dcp >= 2 && dcp <= std::min(question.options.tp, kRanksMax); ++dcp) {
    if (question.options.tp % dcp != 0) continue;
    PlanOptions options = question.options;
    options.dcp = dcp;
    try_options(options, "topology.dcp", std::to_string(dcp));
  }
  PlanOptions options = question.options;
  options.cache_dtype = "fp8_e4m3";
  if (question.options.cache_dtype != options.cache_dtype)
    try_options(options, "cache_dtype", options.cache_dtype);
  outcome.remedies.insert(outcome.remedies.begin(), found.begin(), found.end());
}

}  // namespace kvasir::cli
