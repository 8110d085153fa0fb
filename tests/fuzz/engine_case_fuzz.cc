// Any bytes give an engine case or a typed error; a case is planned in both versions, and a plan's text
// depends on nothing else.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/typed_error.h"
#include "planner/request/engine_case_json.h"
#include "planner/rulesets/vllm/engine_plan_text.h"
#include "planner/rulesets/vllm/plan_engine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kvasir::vllm::EngineVersion;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto engine_case = kvasir::ReadEngineCaseJson(json);
  if (!engine_case.ok()) {
    KVASIR_CHECK(!kvasir::ReasonOf(engine_case.status()).empty());
    return 0;
  }
  for (const EngineVersion version : {EngineVersion::k2026_08, EngineVersion::k2026_11}) {
    const kvasir::vllm::EnginePlan plan = PlanEngine(*engine_case, version);
    KVASIR_CHECK(plan.failure.has_value() || plan.workers.size() == engine_case->workers.size());
    const std::string text = ToText(*engine_case, plan);
    KVASIR_CHECK(
        std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (' ' <= c && c <= '~'); }));
    KVASIR_CHECK(ToText(*engine_case, PlanEngine(*engine_case, version)) == text);
  }
  return 0;
}
