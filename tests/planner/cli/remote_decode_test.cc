// kvasir decode: what it asks a worker, and how answers and failures are shown.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/cli/remote/prompts.h"
#include "tests/planner/cli/remote_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

using ::testing::HasSubstr;

TEST_F(RemoteTest, DecodesAllPromptsOnOneStream) {
  planner_.deployment.set_leader_address(address_);
  const Answer answer = Run({"decode", "ab\n", "xyz", "--stats", "--max-tokens", "9"});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("[1] ab\\x0a\n[2] xyz\n"));
  EXPECT_THAT(answer.out,
              HasSubstr("6 tokens · 4 target steps · 28 drafted, 6 accepted · 1.0 tokens per step"));
  ASSERT_EQ(worker_.joins.size(), 2U);
  EXPECT_EQ(worker_.joins[0].prompt_token_ids(0), kBeginToken);
  EXPECT_EQ(worker_.joins[0].max_tokens(), 9);
  EXPECT_EQ(worker_.joins[0].stop_token_ids(0), kEndToken);
  EXPECT_TRUE(worker_.joins[0].speculate());
}

TEST_F(RemoteTest, DecodesTokenIdsAsJson) {
  const Answer answer =
      Run({"decode", "--leader", address_, "--tokens", "1,2,3", "--no-speculate", "--output", "json"});
  ASSERT_EQ(answer.code, kExitOk) << answer.err;
  const auto json = nlohmann::json::parse(answer.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto& request = json["requests"][0];
  EXPECT_EQ(request["token_ids"], (std::vector<int>{2, 3}));
  EXPECT_EQ(request["finish"], "stop_token");
  EXPECT_EQ(request["epoch"], 7);
  EXPECT_TRUE(request["error"].is_null());
  EXPECT_FALSE(worker_.joins[0].speculate());
  EXPECT_EQ(worker_.joins[0].stop_token_ids_size(), 0);
}

TEST_F(RemoteTest, DecodeCarriesHowTokensAreChosen) {
  const Answer answer =
      Run({"decode", "--leader", address_, "--tokens", "1,2,3", "1,2", "--temperature", "0.7", "--top-k",
           "40", "--top-p", "0.9", "--seed", "5", "--stop", "10,46", "--logprobs", "--wait"});
  ASSERT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("[1] 2,3\nlogprobs -0.500 -0.500\n"));
  ASSERT_EQ(worker_.joins.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const worker::v1::JoinRequest& join = worker_.joins[i];
    EXPECT_EQ(join.sampling().temperature(), 0.7);
    EXPECT_EQ(join.sampling().top_k(), 40);
    EXPECT_EQ(join.sampling().top_p(), 0.9);
    EXPECT_EQ(join.sampling().seed(), 5 + i);
    EXPECT_TRUE(join.sampling().logprobs());
    EXPECT_TRUE(join.wait());
    EXPECT_EQ(join.stop_token_ids_size(), 2);
  }
  worker_.joins.clear();
  const auto json = nlohmann::json::parse(
      Run({"decode", "--leader", address_, "--tokens", "1,2,3", "--temperature", "1", "--output", "json"})
          .out,
      nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_FALSE(worker_.joins[0].sampling().has_seed());
  EXPECT_FALSE(worker_.joins[0].sampling().has_top_p());
  EXPECT_EQ(json["requests"][0]["seed"], 77);  // the one that the worker picked
  EXPECT_EQ(json["requests"][0]["queue_us"], 1500);
  EXPECT_THAT(Run({"decode", "x", "--temperature", "warm"}).err,
              HasSubstr("--temperature warm: write a number"));
  EXPECT_THAT(Run({"decode", "x", "--top-p", "nan"}).err, HasSubstr("--top-p nan: write a number"));
  EXPECT_THAT(Run({"decode", "x", "--seed", "-1"}).err, HasSubstr("--seed -1: want 0 or more"));
  EXPECT_THAT(Run({"decode", "x", "--stop", "a"}).err, HasSubstr("write them like 1,2,3"));
}

TEST_F(RemoteTest, DecodeFailures) {
  planner_.deployment.set_name("default");
  EXPECT_THAT(Run({"decode", "x"}).err, HasSubstr("serves nothing"));
  planner_.deployment.set_leader_address(address_);
  const Answer refused = Run({"decode", "--tokens", "1", "1,2"});
  EXPECT_EQ(refused.code, kExitBadUsage);
  EXPECT_THAT(refused.err, HasSubstr("prompt 1: VALUE_OUT_OF_RANGE"));
  EXPECT_THAT(refused.out, HasSubstr("[2] 2"));
  worker_.status =
      MakeError({.code = absl::StatusCode::kUnavailable, .reason = reason::kRankLost, .message = "gone"});
  const Answer lost = Run({"decode", "xy"});
  EXPECT_EQ(lost.code, kExitServiceFailure);
  EXPECT_THAT(lost.err, HasSubstr("RANK_LOST"));
  EXPECT_THAT(lost.out, HasSubstr("xy"));  // what came before the end is not lost
  EXPECT_THAT(Run({"decode", "x", "--tokenizer", "gpt2"}).err, HasSubstr("only bytes is known"));
  EXPECT_THAT(Run({"decode", "--tokens", "1,-2"}).err, HasSubstr("write them like 1,2,3"));
  EXPECT_EQ(Run({"decode"}).code, kExitBadUsage);
}

}  // namespace
}  // namespace kvasir::cli
