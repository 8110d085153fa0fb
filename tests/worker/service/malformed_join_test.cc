// Wrong requests on a Decode stream: each gets its code, reason and field, and its neighbours finish.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/shared_rig.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir {
namespace {

using testing::DecodeAllOf;
using testing::DecodeResult;
using testing::JoinMessage;
using testing::SharedRig;
using Code = absl::StatusCode;
namespace wire = worker::v1;

// Requests of a Decode stream: an error of one leaves the others alone.
struct JoinCase {
  std::string name;
  std::function<void(wire::DecodeRequest&)> change;
  Code code;
  std::string reason;
  std::string field;
};
void PrintTo(const JoinCase& c, std::ostream* out) { *out << c.name; }

using Sampling = wire::SamplingParameters;

JoinCase SamplingCase(std::string name, const std::string& field, std::function<void(Sampling&)> change) {
  return {
      std::move(name),
      [change = std::move(change)](wire::DecodeRequest& r) { change(*r.mutable_join()->mutable_sampling()); },
      Code::kInvalidArgument, reason::kValueOutOfRange, "sampling." + field};
}

class MalformedJoinTest : public ::testing::TestWithParam<JoinCase> {};

TEST_P(MalformedJoinTest, IsAnsweredOnTheStreamAndTheOtherRequestFinishes) {
  wire::DecodeRequest bad = JoinMessage(7, {1, 2, 3}, 5, true);
  GetParam().change(bad);
  const DecodeResult result = DecodeAllOf(
      *SharedRig().at(0).stub, {JoinMessage(1, {1, 2, 3}, 9, true), bad, JoinMessage(2, {4}, 9, false)});
  KVASIR_EXPECT_OK(result.status);
  EXPECT_TRUE(result.requests.at(1).finished);
  EXPECT_TRUE(result.requests.at(2).finished);
  const wire::ErrorEvent& error = result.requests.at(bad.join().tag()).error;
  EXPECT_EQ(static_cast<Code>(error.code()), GetParam().code) << error.ShortDebugString();
  EXPECT_EQ(error.reason(), GetParam().reason);
  EXPECT_EQ(error.field(), GetParam().field);
  EXPECT_NE(error.message(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Joins, MalformedJoinTest,
    ::testing::Values(
        JoinCase{"ZeroTag", [](wire::DecodeRequest& r) { r.mutable_join()->set_tag(0); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "tag"},
        JoinCase{"NoDeployment", [](wire::DecodeRequest& r) { r.mutable_join()->clear_deployment(); },
                 Code::kInvalidArgument, reason::kMissingField, "deployment"},
        JoinCase{"UnknownDeployment",
                 [](wire::DecodeRequest& r) { r.mutable_join()->set_deployment("other"); }, Code::kNotFound,
                 reason::kDeploymentUnknown, ""},
        JoinCase{"EmptyPrompt", [](wire::DecodeRequest& r) { r.mutable_join()->clear_prompt_token_ids(); },
                 Code::kInvalidArgument, reason::kMissingField, "prompt_token_ids"},
        JoinCase{
            "HugePrompt",
            [](wire::DecodeRequest& r) { r.mutable_join()->mutable_prompt_token_ids()->Resize(1 << 20, 1); },
            Code::kInvalidArgument, reason::kValueOutOfRange, "prompt_token_ids"},
        JoinCase{
            "TokenBeyondTheVocabulary",
            [](wire::DecodeRequest& r) { r.mutable_join()->set_prompt_token_ids(1, testing::kSmallVocab); },
            Code::kInvalidArgument, reason::kValueOutOfRange, "prompt_token_ids[1]"},
        JoinCase{"NegativeToken",
                 [](wire::DecodeRequest& r) { r.mutable_join()->set_prompt_token_ids(2, -1); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "prompt_token_ids[2]"},
        JoinCase{"NoMaxTokens", [](wire::DecodeRequest& r) { r.mutable_join()->clear_max_tokens(); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "max_tokens"},
        JoinCase{"NegativeMaxTokens", [](wire::DecodeRequest& r) { r.mutable_join()->set_max_tokens(-5); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "max_tokens"},
        JoinCase{"StopTokenBeyondTheVocabulary",
                 [](wire::DecodeRequest& r) { r.mutable_join()->add_stop_token_ids(1 << 30); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "stop_token_ids[0]"},
        JoinCase{"TooManyStopTokens",
                 [](wire::DecodeRequest& r) { r.mutable_join()->mutable_stop_token_ids()->Resize(65, 1); },
                 Code::kInvalidArgument, reason::kTooManyItems, "stop_token_ids"},
        SamplingCase("NegativeTemperature", "temperature", [](Sampling& s) { s.set_temperature(-0.5); }),
        SamplingCase("HotTemperature", "temperature", [](Sampling& s) { s.set_temperature(101); }),
        SamplingCase("TemperatureIsNoNumber", "temperature", [](Sampling& s) { s.set_temperature(NAN); }),
        SamplingCase("InfiniteTemperature", "temperature", [](Sampling& s) { s.set_temperature(INFINITY); }),
        SamplingCase("NegativeTopK", "top_k", [](Sampling& s) { s.set_top_k(-1); }),
        SamplingCase("HugeTopK", "top_k", [](Sampling& s) { s.set_top_k(INT64_MAX); }),
        SamplingCase("ZeroTopP", "top_p", [](Sampling& s) { s.set_top_p(0); }),
        SamplingCase("TopPAboveOne", "top_p", [](Sampling& s) { s.set_top_p(1.5); }),
        SamplingCase("TopPIsNoNumber", "top_p", [](Sampling& s) { s.set_top_p(NAN); }),
        JoinCase{"UnknownVerifyMethod",
                 [](wire::DecodeRequest& r) {
                   r.mutable_join()->mutable_sampling()->set_verify_method(
                       static_cast<wire::VerifyMethod>(9));
                 },
                 Code::kInvalidArgument, reason::kUnknownValue, "sampling.verify_method"},
        JoinCase{"ZeroTimeout", [](wire::DecodeRequest& r) { r.mutable_join()->mutable_timeout(); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "timeout"},
        JoinCase{"NegativeTimeout",
                 [](wire::DecodeRequest& r) { r.mutable_join()->mutable_timeout()->set_seconds(-1); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "timeout"},
        JoinCase{"TimeoutOfDays",
                 [](wire::DecodeRequest& r) { r.mutable_join()->mutable_timeout()->set_seconds(86'401); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "timeout"},
        JoinCase{"LongerThanTheContext",
                 [](wire::DecodeRequest& r) { r.mutable_join()->set_max_tokens(1 << 20); },
                 Code::kInvalidArgument, reason::kValueOutOfRange, "max_tokens"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kvasir
