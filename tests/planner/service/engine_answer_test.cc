// What an engine's ruleset answers on the wire: from models, from a launch command, from the engine's own
// specs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "common/base/error_reasons.h"
#include "common/base/sha256.h"
#include "common/base/typed_error.h"
#include "planner/service/answers.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using planner::v1::CreatePlanRequest;
using planner::v1::CreatePlanResponse;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kMemory = 50'251'117'568;  // 46.8 GiB

CreatePlanRequest OfModels(const std::string& ruleset) {
  CreatePlanRequest request;
  request.mutable_target()->set_catalogue_name("kimi-k3");
  request.mutable_draft()->set_catalogue_name("kimi-k3-dspark");
  plan::v1::PlanOptions& options = *request.mutable_options();
  options.mutable_topology()->set_tp(8);
  options.mutable_topology()->set_dcp(8);
  options.add_kv_memory_bytes(kMemory);
  options.add_context_tokens(131'072);
  options.set_ruleset(ruleset);
  return request;
}

CreatePlanRequest OfLaunch(const std::string& ruleset) {
  CreatePlanRequest request;
  plan::v1::EngineInput& engine = *request.mutable_engine();
  engine.set_ruleset(ruleset);
  for (const char* word :
       {"vllm", "serve", "moonshotai/Kimi-K3", "--tensor-parallel-size", "8", "-dcp", "8", "--max-model-len",
        "131072", "--speculative-config",
        R"({"model":"Inferact/Kimi-K3-DSpark","method":"dspark","num_speculative_tokens":7})"}) {
    engine.mutable_launch()->add_words(word);
  }
  engine.mutable_launch()->add_kv_memory_bytes(kMemory);
  return request;
}

// One latent layer: pages of 64 tokens x 576 elements x 2 bytes = 73,728 bytes.
CreatePlanRequest OfSpecs() {
  CreatePlanRequest request;
  request.mutable_engine()->set_specs_json(R"({
    "specs": {"m": {"kind": "mla", "block_size": 64, "num_kv_heads": 1, "head_size": 576, "dtype": "bfloat16"}},
    "layers": [{"name": "model.layers.0.attn", "spec": "m"}],
    "available_memory_bytes": [1073741824],
    "config": {"max_model_len": 4096, "block_size": 64}})");
  return request;
}

class RulesetTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Versions, RulesetTest, ::testing::Values("vllm-2026-08", "vllm-2026-11"));

TEST_P(RulesetTest, PlansKimiK3AndItsDraft) {
  const auto response = AnswerCreatePlan(OfModels(GetParam()));
  KVASIR_ASSERT_OK(response);
  ASSERT_TRUE(response->has_engine());
  const plan::v1::EnginePrediction& engine = response->engine();
  EXPECT_FALSE(engine.has_failure()) << engine.failure().message();
  EXPECT_EQ(engine.ruleset(), GetParam());
  EXPECT_EQ(engine.plan_id(), Sha256Hex(engine.canonical_text()));
  EXPECT_LE(engine.canonical_text().size(), 16U << 10);
  int layers = 0;
  for (const plan::v1::EngineGroup& group : engine.groups()) layers += group.layers_size();
  EXPECT_EQ(layers, 98);
  EXPECT_GT(engine.workers(0).block_count(), 0);
  EXPECT_THAT(engine.log_lines(), Contains(HasSubstr("GPU KV cache size: ")));
}

TEST_P(RulesetTest, ALaunchCommandSaysTheSameAsOptions) {
  const auto models = AnswerCreatePlan(OfModels(GetParam()));
  const auto launch = AnswerCreatePlan(OfLaunch(GetParam()));
  KVASIR_ASSERT_OK(models);
  KVASIR_ASSERT_OK(launch);
  EXPECT_EQ(launch->engine().canonical_text(), models->engine().canonical_text());
  EXPECT_THAT(launch->engine().unknown_flags(), IsEmpty());
}

TEST(EngineAnswerTest, UnknownFlagsAreListed) {
  CreatePlanRequest request = OfLaunch("");
  request.mutable_engine()->mutable_launch()->add_words("--max-modle-len");
  request.mutable_engine()->mutable_launch()->add_words("4096");
  const auto response = AnswerCreatePlan(request);
  KVASIR_ASSERT_OK(response);
  EXPECT_THAT(response->engine().unknown_flags(), Contains(HasSubstr("--max-modle-len")));
}

TEST(EngineAnswerTest, ExplicitSpecsPlanAsTheyAre) {
  const auto response = AnswerCreatePlan(OfSpecs());
  KVASIR_ASSERT_OK(response);
  const plan::v1::EnginePrediction& engine = response->engine();
  EXPECT_EQ(engine.ruleset(), "vllm-2026-11") << "the newest where none is named";
  EXPECT_EQ(engine.workers(0).block_count(), 1'073'741'824 / 73'728);
  ASSERT_EQ(engine.groups_size(), 1);
  EXPECT_EQ(engine.groups(0).page_bytes(), 73'728);
  EXPECT_EQ(engine.groups(0).spec(), "MLAAttentionSpec");
  EXPECT_EQ(engine.groups(0).layers(0), "model.layers.0.attn");
}

TEST(EngineAnswerTest, AFailureOfTheEngineIsASuccessfulAnswer) {
  CreatePlanRequest request = OfModels("vllm-2026-11");
  request.mutable_options()->set_kv_memory_bytes(0, 1 << 20);
  const auto response = AnswerCreatePlan(request);
  KVASIR_ASSERT_OK(response);
  ASSERT_TRUE(response->engine().has_failure());
  EXPECT_EQ(response->engine().failure().kind(), "ValueError");
  EXPECT_EQ(response->engine().failure().stage(), "plan");
}

struct BadCase {
  std::string name;
  std::function<CreatePlanRequest()> request;
  std::string reason;
  std::string field;
};
void PrintTo(const BadCase& c, std::ostream* out) { *out << c.name; }

CreatePlanRequest Changed(CreatePlanRequest request, const std::function<void(CreatePlanRequest&)>& change) {
  change(request);
  return request;
}

class BadEngineTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadEngineTest, IsRefusedByField) {
  const auto response = AnswerCreatePlan(GetParam().request());
  ASSERT_FALSE(response.ok());
  const TypedError error = ErrorOf(response.status());
  EXPECT_EQ(error.reason, GetParam().reason) << error.message;
  EXPECT_EQ(error.field, GetParam().field) << error.message;
}

std::vector<BadCase> BadCases() {
  using Request = CreatePlanRequest;
  return {
      {"both", [] { return Changed(OfSpecs(), [](Request& r) { r.mutable_target(); }); },
       reason::kConflictingFields, "engine"},
      {"no_input",
       [] { return Changed(OfSpecs(), [](Request& r) { r.mutable_engine()->clear_specs_json(); }); },
       reason::kMissingField, "engine.input"},
      {"ruleset",
       [] { return Changed(OfSpecs(), [](Request& r) { r.mutable_engine()->set_ruleset("vllm"); }); },
       reason::kUnknownValue, "engine.ruleset"},
      {"no_words",
       [] {
         return Changed(OfLaunch(""),
                        [](Request& r) { r.mutable_engine()->mutable_launch()->clear_words(); });
       },
       reason::kMissingField, "engine.launch.words"},
      {"no_memory",
       [] {
         return Changed(OfLaunch(""),
                        [](Request& r) { r.mutable_engine()->mutable_launch()->clear_kv_memory_bytes(); });
       },
       reason::kMissingField, "engine.launch.kv_memory_bytes"},
      {"negative_memory",
       [] {
         return Changed(OfLaunch(""),
                        [](Request& r) { r.mutable_engine()->mutable_launch()->set_kv_memory_bytes(0, -1); });
       },
       reason::kValueOutOfRange, "engine.launch.kv_memory_bytes[0]"},
      {"unknown_model",
       [] {
         return Changed(OfLaunch(""),
                        [](Request& r) { r.mutable_engine()->mutable_launch()->set_words(2, "who/knows"); });
       },
       reason::kModelUnknown, "engine.launch.words"},
      {"layers_under_an_engine",
       [] {
         return Changed(OfModels("vllm-2026-11"),
                        [](Request& r) { r.mutable_target()->mutable_layers()->add_layers(); });
       },
       reason::kUnknownValue, "target.layers"},
      {"cache_dtype",
       [] {
         return Changed(OfModels("vllm-2026-11"),
                        [](Request& r) { r.mutable_options()->set_cache_dtype("f64"); });
       },
       reason::kUnknownValue, "options.cache_dtype"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, BadEngineTest, ::testing::ValuesIn(BadCases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(EngineAnswerTest, SpecsThatAreNoJsonAreRefused) {
  CreatePlanRequest request = OfSpecs();
  request.mutable_engine()->set_specs_json("{");
  const auto response = AnswerCreatePlan(request);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorOf(response.status()).field, HasSubstr("engine.specs_json"));
}

}  // namespace
}  // namespace kvasir
