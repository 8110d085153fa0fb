// The answer of `solve` for programs: kvasir.solve/1 (docs/formats/plan_json.md).
#include <nlohmann/json.hpp>
#include <string>

#include "planner/cli/show_solution.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

Json OptionsJson(const Solution& solution) {
  const PlanOptions& o = solution.options;
  return {{"tp", o.tp},
          {"dcp", o.dcp},
          {"interleave", o.interleave},
          {"kv_memory_bytes", solution.planned.plan.arena_bytes.value()},
          {"context_tokens", solution.context_tokens},
          {"min_requests", o.min_requests},
          {"max_requests", o.max_requests},
          {"prefill_chunk", o.prefill_chunk},
          {"block_tokens", o.block_tokens},
          {"target_backend", o.target_backend},
          {"draft_backend", o.draft_backend},
          {"cache_dtype", o.cache_dtype},
          {"state_rollback", StateRollbackName(solution.planned.plan.rollback)},
          {"draft_context", o.draft_context},
          {"draft_tokens", solution.planned.plan.draft_tokens}};
}

Json WhyNotJson(const NoSolution& why) {
  Json refusals = Json::array();
  for (const Refusal& refusal : why.refusals) {
    refusals.push_back(
        {{"rule", RuleName(refusal.rule)}, {"field", refusal.field}, {"message", RefusalText(refusal)}});
  }
  Json json = {{"refusals", refusals}, {"shortfall_bytes", nullptr}, {"device", nullptr}};
  if (why.misfit.has_value()) json["shortfall_bytes"] = why.misfit->shortfall.value();
  if (!why.device.empty()) json["device"] = why.device;
  json["nearest"] = nullptr;
  if (why.tp > 0) json["nearest"] = {{"tp", why.tp}, {"dcp", why.dcp}};
  return json;
}

}  // namespace

std::string SolutionJson(const SolveQuestion& question, const SolveAnswer& answer) {
  const char* verdict = answer.at_best.has_value()        ? "may_fit"
                        : answer.why_not.refusals.empty() ? "does_not_fit"
                                                          : "refused";
  Json json = {{"schema", "kvasir.solve/1"},
               {"goal", SolveGoalName(question.goal)},
               {"verdict", answer.solution.has_value() ? "solved" : verdict},
               {"value", nullptr},
               {"plan_id", nullptr}};
  if (answer.solution.has_value()) {
    json["value"] = answer.solution->value;
    json["plan_id"] = answer.solution->planned.plan_id;
    json["requests"] = answer.solution->requests;
    json["guaranteed_requests"] = answer.solution->guaranteed_requests;
    json["options"] = OptionsJson(*answer.solution);
  } else {
    json["why_not"] = WhyNotJson(answer.why_not);
  }
  json["needed_bytes"] = nullptr;
  if (answer.needed.has_value()) json["needed_bytes"] = answer.needed->value();
  json["at_best"] = nullptr;
  if (answer.at_best.has_value()) {
    json["at_best"] = {{"value", answer.at_best->value},
                       {"plan_id", answer.at_best->planned.plan_id},
                       {"options", OptionsJson(*answer.at_best)}};
  }
  json["instead"] = Json::array();
  for (const ChangedSolution& change : answer.instead)
    json["instead"].push_back({{"flags", change.flags}, {"value", change.value}});
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvasir::cli
