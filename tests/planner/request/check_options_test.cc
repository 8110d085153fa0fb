#include "planner/request/check_options.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/models/catalogue.h"
#include "planner/request/launch_of_options.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

struct Wrong {
  std::string_view field;
  void (*change)(PlanOptions& options);
};

constexpr Wrong kWrong[] = {
    {"tp", [](PlanOptions& o) { o.tp = 0; }},
    {"tp", [](PlanOptions& o) { o.tp = -4; }},
    {"dcp", [](PlanOptions& o) { o.dcp = 0; }},
    {"dcp", [](PlanOptions& o) { o.dcp = kHuge; }},
    {"interleave", [](PlanOptions& o) { o.interleave = 0; }},
    {"max_requests", [](PlanOptions& o) { o.max_requests = 0; }},
    {"max_requests", [](PlanOptions& o) { o.max_requests = kHuge; }},
    {"min_requests", [](PlanOptions& o) { o.min_requests = -1; }},
    {"draft_tokens", [](PlanOptions& o) { o.draft_tokens = -3; }},
    {"draft_tokens", [](PlanOptions& o) { o.draft_tokens = 99'999; }},
    {"block_tokens", [](PlanOptions& o) { o.block_tokens = -16; }},
    {"prefill_chunk", [](PlanOptions& o) { o.prefill_chunk = -1; }},
    {"context", [](PlanOptions& o) { o.contexts = {4096, -1}; }},
    {"kv_memory", [](PlanOptions& o) { o.kv_memory_bytes = {kHuge}; }},
    {"state_rollback", [](PlanOptions& o) { o.state_rollback = "foo"; }},
    {"draft_context", [](PlanOptions& o) { o.draft_context = "both"; }},
};

// An engine's ruleset divides by some of these; none may reach it.
TEST(CheckPlanOptions, NamesTheOptionThatIsWrongAndNoEngineIsAsked) {
  const auto target = FindInCatalogue("qwen3-8b");
  KVASIR_ASSERT_OK(target);
  EXPECT_THAT(CheckPlanOptions(PlanOptions{}), testing::IsOk());
  KVASIR_EXPECT_OK(LaunchOf(*target, std::nullopt, PlanOptions{}, EngineRelease{}));
  for (const Wrong& wrong : kWrong) {
    PlanOptions options;
    wrong.change(options);
    EXPECT_EQ(ErrorOf(CheckPlanOptions(options)).field, wrong.field);
    const auto launch = LaunchOf(*target, std::nullopt, options, EngineRelease{});
    EXPECT_EQ(ErrorOf(launch.status()).field, wrong.field) << launch.status();
  }
}

// The engine has no such draft, so its rulesets must not plan another one in its place.
TEST(LaunchOf, AReplicatedDraftIsNoneOfTheEngines) {
  const auto target = FindInCatalogue("kimi-k3");
  const auto draft = FindInCatalogue("kimi-k3-dspark");
  KVASIR_ASSERT_OK(target);
  KVASIR_ASSERT_OK(draft);
  PlanOptions options;
  options.tp = 8;
  options.draft_context = kDraftReplicated;
  KVASIR_EXPECT_OK(LaunchOf(*target, *draft, options, EngineRelease{}));
  options.dcp = 8;
  KVASIR_EXPECT_OK(LaunchOf(*target, std::nullopt, options, EngineRelease{}));
  EXPECT_EQ(ErrorOf(LaunchOf(*target, *draft, options, EngineRelease{}).status()).field, "draft_context");
}

}  // namespace
}  // namespace kvasir
