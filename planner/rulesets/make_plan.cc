#include "planner/rulesets/make_plan.h"

#include "planner/core/pipeline.h"
#include "planner/core/stage_text.h"
#include "planner/rulesets/native/native.h"

namespace kvasir {
namespace {

std::vector<Ruleset> Rulesets() { return {native::NativeRuleset()}; }

}  // namespace

std::vector<std::string> RulesetNames() {
  std::vector<std::string> names;
  for (const Ruleset& ruleset : Rulesets()) names.emplace_back(ruleset.name);
  return names;
}

PlanOutcome MakePlan(const PlanRequest& request, const TraceSink& trace) {
  for (const Ruleset& ruleset : Rulesets()) {
    if (ruleset.name == request.ruleset) return RunPipeline(request, ruleset, trace);
  }
  return Refusals{
      {MakeRefusal(RuleId::kRulesetUnknown, {},
                   {{"ruleset", request.ruleset.substr(0, 64)}, {"known", JoinedText(RulesetNames())}})}};
}

}  // namespace kvasir
