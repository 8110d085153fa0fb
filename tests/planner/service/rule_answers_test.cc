// What is well-formed and breaks a rule is answered, not refused by the transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/service/answers.h"
#include "tests/planner/service/planner_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using planner::v1::CreatePlanRequest;
using testing::GoodLayersRequest;
using testing::GoodPlanRequest;

struct RuleCase {
  std::string name = {};
  std::function<void(CreatePlanRequest&)> change;
  std::string rule;
};
void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.name; }

class RuleAnswerTest : public ::testing::TestWithParam<RuleCase> {};

TEST_P(RuleAnswerTest, IsASuccessfulAnswerThatNamesTheRule) {
  CreatePlanRequest request =
      GetParam().name.starts_with("layers_") ? GoodLayersRequest() : GoodPlanRequest();
  GetParam().change(request);
  const auto response = AnswerCreatePlan(request);
  KVASIR_ASSERT_OK(response);
  ASSERT_TRUE(response->has_refusals()) << response->DebugString();
  std::vector<std::string> rules;
  for (const plan::v1::Refusal& refusal : response->refusals().refusals()) {
    rules.push_back(refusal.rule());
    EXPECT_NE(refusal.message(), "");
  }
  EXPECT_THAT(rules, ::testing::Contains(GetParam().rule));
  planner::v1::ValidateSpecsRequest same;
  *same.mutable_target() = request.target();
  if (request.has_draft()) {
    *same.mutable_draft() = request.draft();
  }
  *same.mutable_options() = request.options();
  const auto judged = AnswerValidateSpecs(same);
  KVASIR_ASSERT_OK(judged);
  ASSERT_EQ(judged->refusals_size(), response->refusals().refusals_size());
  for (int i = 0; i < judged->refusals_size(); ++i) {
    EXPECT_EQ(judged->refusals(i).SerializeAsString(), response->refusals().refusals(i).SerializeAsString());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RuleAnswerTest,
    ::testing::Values(
        RuleCase{"tp_does_not_divide_heads",
                 [](auto& r) {
                   r.mutable_options()->mutable_topology()->set_tp(7);
                   r.mutable_options()->mutable_topology()->set_dcp(7);
                 },
                 "HEADS_NOT_DIVISIBLE_BY_TP"},
        RuleCase{"dcp_does_not_divide_tp",
                 [](auto& r) {
                   r.mutable_options()->mutable_topology()->set_tp(4);
                   r.mutable_options()->mutable_topology()->set_dcp(3);
                 },
                 "DCP_NOT_DIVIDING_TP"},
        RuleCase{"layers_duplicate_id",
                 [](auto& r) { r.mutable_target()->mutable_layers()->mutable_layers(1)->set_index(0); },
                 "DUPLICATE_LAYER_ID"},
        RuleCase{"layers_duplicate_name",
                 [](auto& r) {
                   for (auto& layer : *r.mutable_target()->mutable_layers()->mutable_layers())
                     layer.set_name("same");
                 },
                 "DUPLICATE_LAYER_NAME"},
        RuleCase{"unknown_ruleset", [](auto& r) { r.mutable_options()->set_ruleset("mine"); },
                 "RULESET_UNKNOWN"},
        RuleCase{"unknown_backend", [](auto& r) { r.mutable_options()->set_draft_backend("mine"); },
                 "BACKEND_UNKNOWN"},
        RuleCase{"unknown_cache_dtype", [](auto& r) { r.mutable_options()->set_cache_dtype("int3"); },
                 "DTYPE_UNKNOWN"},
        RuleCase{"unknown_rollback", [](auto& r) { r.mutable_options()->set_state_rollback("hope"); },
                 "INVALID_NAME"},
        RuleCase{"unknown_draft_context", [](auto& r) { r.mutable_options()->set_draft_context("both"); },
                 "INVALID_NAME"},
        RuleCase{"draft_tap_beyond_the_target",
                 [](auto& r) { r.mutable_draft()->set_catalogue_name("kimi-k3-dspark"); },
                 "DRAFT_TAP_BEYOND_TARGET"},
        RuleCase{"context_over_the_models_limit",
                 [](auto& r) { r.mutable_options()->set_context_tokens(0, 1 << 29); },
                 "CONTEXT_OVER_MODEL_LIMIT"},
        RuleCase{"memory_for_too_few_ranks",
                 [](auto& r) {
                   r.mutable_options()->mutable_topology()->set_tp(4);
                   r.mutable_options()->add_kv_memory_bytes(16 << 20);
                 },
                 "RANK_MISSING"}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace kvasir
