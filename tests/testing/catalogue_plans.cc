#include "tests/testing/catalogue_plans.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/models/catalogue.h"
#include "planner/request/build_request.h"
#include "planner/request/launch_command.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::testing {
namespace {

ModelDescription Model(const std::string& name) {
  auto found = FindInCatalogue(name);
  if (found.ok()) return *std::move(found);
  ADD_FAILURE() << found.status();
  return {};
}

}  // namespace

PlanOutcome CatalogueOutcome(const std::string& target, const std::string& draft,
                             const PlanOptions& options) {
  std::optional<ModelDescription> drafting;
  if (!draft.empty()) drafting = Model(draft);
  return MakePlan(BuildRequest(Model(target), drafting, options));
}

Planned CataloguePlan(const std::string& target, const std::string& draft, const PlanOptions& options) {
  PlanOutcome outcome = CatalogueOutcome(target, draft, options);
  if (auto* const planned = std::get_if<Planned>(&outcome)) return std::move(*planned);
  const auto* const refusals = std::get_if<Refusals>(&outcome);
  ADD_FAILURE() << (refusals != nullptr ? RefusalText(refusals->refusals.front()) : "does not fit");
  return {};
}

std::int64_t OwnedBy(const Plan& plan, std::string_view owner) {
  std::int64_t bytes = 0;
  for (const OwnedBytes& owned : plan.attribution) {
    if (owned.owner.substr(0, owner.size()) == owner) bytes += owned.bytes.value();
  }
  return bytes;
}

AskedEngine AskEngine(const std::string& command, std::string_view release) {
  AskedEngine asked;
  const std::vector<std::string> words = {command};
  const auto parsed = ParseLaunchCommand(words, {});
  if (!parsed.ok()) {
    ADD_FAILURE() << parsed.status();
    return asked;
  }
  asked.launch.options = parsed->options;
  asked.launch.target = Model(parsed->options.model.value_or(""));
  if (parsed->options.spec_model.has_value()) asked.launch.draft = Model(*parsed->options.spec_model);
  asked.launch.release = ParseEngineRelease(release).value_or(EngineRelease{});
  auto question = EngineCaseOf(asked.launch, {parsed->options.kv_cache_memory_bytes.value_or(0)});
  if (!question.ok()) {
    ADD_FAILURE() << question.status();
    return asked;
  }
  asked.question = *std::move(question);
  asked.answer = AnswerOf(asked.question.engine_case, asked.launch.release, asked.question.log, std::nullopt);
  return asked;
}

}  // namespace kvasir::testing
