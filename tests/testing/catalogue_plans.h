// Plans of catalogue models for tests: the native one, and what the engine vLLM does with a launch command.
#ifndef KVASIR_TESTS_TESTING_CATALOGUE_PLANS_H_
#define KVASIR_TESTS_TESTING_CATALOGUE_PLANS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/core/outcome.h"
#include "planner/request/engine_answer.h"
#include "planner/request/engine_settings.h"
#include "planner/request/engine_specs.h"
#include "planner/request/plan_options.h"

namespace kvasir::testing {

// `draft` may be empty. Names are the catalogue's.
[[nodiscard]] PlanOutcome CatalogueOutcome(const std::string& target, const std::string& draft,
                                           const PlanOptions& options);

// The plan; the test fails, and an empty one is returned, where there is none.
[[nodiscard]] Planned CataloguePlan(const std::string& target, const std::string& draft,
                                    const PlanOptions& options);

// Bytes of the arena whose owner's name begins so.
[[nodiscard]] std::int64_t OwnedBy(const Plan& plan, std::string_view owner);

struct AskedEngine {
  EngineLaunch launch;
  EngineQuestion question;
  EngineAnswer answer;
};

// `command` begins with "vllm serve", names models of the catalogue and gives --kv-cache-memory-bytes. The
// test fails, and an empty answer is returned, where the command is refused.
[[nodiscard]] AskedEngine AskEngine(const std::string& command, std::string_view release = "2026-11");

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_CATALOGUE_PLANS_H_
