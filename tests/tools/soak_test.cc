// The soak's own judges: what they let pass, and that they find each kind of wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/error_reasons.h"
#include "tests/tools/soak_memory.h"
#include "tests/tools/soak_questions.h"
#include "tests/tools/soak_request.h"
#include "tests/tools/soak_script.h"

namespace kvasir::soak {
namespace {

namespace wire = worker::v1;
using Event = wire::DecodeResponse;

constexpr std::int32_t kStop = 9;
const Answer& TheAnswer() {
  static const auto& answer = *new Answer{{5, 6, 7, 8, kStop, 1, 2, 3}, {-1, -2, -3, -4, -5, -6, -7, -8}};
  return answer;
}

// Of a prompt of two chunks: at most six tokens.
wire::JoinRequest Asked() {
  wire::JoinRequest join;
  join.mutable_prompt_token_ids()->Resize(static_cast<int>(kPrefillChunk) + 1, 1);
  join.set_max_tokens(6);
  join.set_speculate(true);
  join.mutable_sampling()->set_seed(3);
  return join;
}

Event Joined() {
  Event event;
  event.mutable_joined()->set_seed(3);
  return event;
}
Event Said(const std::vector<std::int32_t>& tokens, int drafted = 0, int accepted = 0) {
  Event event;
  event.mutable_tokens()->mutable_token_ids()->Assign(tokens.begin(), tokens.end());
  event.mutable_tokens()->set_drafted_tokens(drafted);
  event.mutable_tokens()->set_accepted_tokens(accepted);
  return event;
}
Event Finished(wire::FinishReason reason, int emitted, int drafted, int accepted, int steps, int chunks = 2) {
  Event event;
  wire::FinishedEvent& finished = *event.mutable_finished();
  finished.set_reason(reason);
  finished.set_emitted_tokens(emitted);
  finished.set_drafted_tokens(drafted);
  finished.set_accepted_tokens(accepted);
  finished.set_target_step_count(steps);
  finished.set_prefill_step_count(chunks);
  return event;
}
Event Failed(absl::StatusCode code, const char* reason) {
  Event event;
  event.mutable_error()->set_code(static_cast<int>(code));
  event.mutable_error()->set_reason(reason);
  return event;
}
Event Exhausted(const char* reason) { return Failed(absl::StatusCode::kResourceExhausted, reason); }

struct Case {
  std::string name;
  std::vector<Event> events;
  std::string fault;  // a part of the first one; empty: none
  End end = End::kFault;
  std::function<void(wire::JoinRequest&)> ask = [](wire::JoinRequest&) {};
  bool cancelled = false;
  int later_ms = 0;  // the events come so long after the request
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class RequestCheckTest : public ::testing::TestWithParam<Case> {};

TEST_P(RequestCheckTest, Judges) {
  const Case& c = GetParam();
  wire::JoinRequest join = Asked();
  c.ask(join);
  RequestCheck check(join, &TheAnswer(), {});
  if (c.cancelled) check.CancelSent();
  std::string fault;
  for (const Event& event : c.events) {
    if (fault.empty())
      fault = check.Take(event, RequestCheck::Time() + std::chrono::milliseconds(c.later_ms));
  }
  if (c.fault.empty()) {
    EXPECT_EQ(fault, "");
    EXPECT_EQ(check.end(), c.end);
  } else {
    EXPECT_NE(fault.find(c.fault), std::string::npos) << fault;
  }
}

constexpr wire::FinishReason kLength = wire::FINISH_REASON_LENGTH;
constexpr wire::FinishReason kStopToken = wire::FINISH_REASON_STOP_TOKEN;
constexpr wire::FinishReason kCancelled = wire::FINISH_REASON_CANCELLED;

const auto kWithStop = [](wire::JoinRequest& join) { join.add_stop_token_ids(kStop); };
const auto kWithWait = [](wire::JoinRequest& join) { join.set_wait(true); };
const auto kWithTimeout = [](wire::JoinRequest& join) { join.mutable_timeout()->set_nanos(50'000'000); };
const auto kWithLogprobs = [](wire::JoinRequest& join) { join.mutable_sampling()->set_logprobs(true); };
const auto kWithoutDraft = [](wire::JoinRequest& join) { join.set_speculate(false); };

INSTANTIATE_TEST_SUITE_P(
    Right, RequestCheckTest,
    ::testing::Values(
        Case{"Length",
             {Joined(), Said({5}), Said({6, 7, 8}, 4, 2), Said({kStop, 1}, 2, 1),
              Finished(kLength, 6, 6, 3, 2)},
             "",
             End::kLength},
        Case{"LastTokenDrafted",
             {Joined(), Said({5}), Said({6, 7, 8, kStop, 1}, 5, 5), Finished(kLength, 6, 5, 5, 1)},
             "",
             End::kLength},
        Case{"StopToken",
             {Joined(), Said({5}), Said({6, 7, 8, kStop}, 4, 3), Finished(kStopToken, 5, 4, 3, 1)},
             "",
             End::kStopToken,
             kWithStop},
        Case{"StopTokenDrafted",
             {Joined(), Said({5}), Said({6, 7, 8, kStop}, 5, 4), Finished(kStopToken, 5, 5, 4, 1)},
             "",
             End::kStopToken,
             kWithStop},
        Case{"Cancelled",
             {Joined(), Said({5}), Finished(kCancelled, 1, 0, 0, 0)},
             "",
             End::kCancelled,
             Case{}.ask,
             true},
        Case{"CancelledInPrefill",
             {Joined(), Finished(kCancelled, 0, 0, 0, 0, 1)},
             "",
             End::kCancelled,
             Case{}.ask,
             true},
        Case{"Late",
             {Joined(), Failed(absl::StatusCode::kDeadlineExceeded, reason::kDeadlineExpired)},
             "",
             End::kTimeout,
             kWithTimeout,
             false,
             50},
        Case{"NoSlot", {Exhausted(reason::kTooManyRequests)}, "", End::kNoSlot},
        Case{"NoBlocks", {Exhausted(reason::kOutOfBlocks)}, "", End::kNoBlocks}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Wrong, RequestCheckTest,
    ::testing::Values(
        Case{"OtherToken", {Joined(), Said({5}), Said({7})}, "token 1 is 7, want 6"},
        Case{"TokenTwice", {Joined(), Said({5}), Said({5})}, "token 1 is 5, want 6"},
        Case{"TokenLost", {Joined(), Said({5}), Said({7, 8}, 5, 1)}, "token 1 is 7, want 6"},
        Case{"JoinedTwice", {Joined(), Joined()}, "joined twice"},
        Case{"NeverJoined", {Said({5})}, "before it joined"},
        Case{"OtherSeed",
             {[] {
               Event e = Joined();
               e.mutable_joined()->set_seed(4);
               return e;
             }()},
             "seed 4"},
        Case{"NoTokens", {Joined(), Said({})}, "without tokens"},
        Case{"Nothing", {Event()}, "without content"},
        Case{"PromptSaysTwo", {Joined(), Said({5, 6})}, "the prompt's step"},
        Case{"StepDoesNotAddUp", {Joined(), Said({5}), Said({6, 7}, 5, 2)}, "a step's tokens do not add up"},
        Case{"UnaskedDraft",
             {Joined(), Said({5}), Said({6}, 5, 0)},
             "without a draft",
             End::kFault,
             kWithoutDraft},
        Case{"AfterTheLimit",
             {Joined(), Said({5}), Said({6, 7, 8, kStop, 1, 2}, 5, 5)},
             "after the limit or a stop token"},
        Case{"AfterTheStop",
             {Joined(), Said({5}), Said({6, 7, 8, kStop, 1}, 5, 4)},
             "after the limit",
             End::kFault,
             kWithStop},
        Case{"LogprobsMissing", {Joined(), Said({5})}, "0 log-probabilities", End::kFault, kWithLogprobs},
        Case{"OtherLogprob",
             {Joined(),
              [] {
                Event e = Said({5});
                e.mutable_tokens()->add_logprobs(-9);
                return e;
              }()},
             "log-probability of token 0",
             End::kFault,
             kWithLogprobs},
        Case{"FinishedEarly", {Joined(), Said({5}), Finished(kLength, 1, 0, 0, 0)}, "finished by length"},
        Case{"NoStopCame", {Joined(), Said({5}), Finished(kStopToken, 1, 0, 0, 0)}, "did not come"},
        Case{"NobodyCancelled", {Joined(), Finished(kCancelled, 0, 0, 0, 0, 0)}, "nobody asked"},
        Case{"Totals",
             {Joined(), Said({5}), Finished(kCancelled, 2, 0, 0, 0)},
             "totals do not add up",
             End::kFault,
             Case{}.ask,
             true},
        Case{"Chunks",
             {Joined(), Said({5}), Finished(kCancelled, 1, 0, 0, 0, 1)},
             "totals do not add up",
             End::kFault,
             Case{}.ask,
             true},
        Case{"TwoEnds",
             {Exhausted(reason::kOutOfBlocks), Exhausted(reason::kOutOfBlocks)},
             "an event after its end"},
        Case{"RefusedThoughItWaits",
             {Exhausted(reason::kOutOfBlocks)},
             "nothing explains",
             End::kFault,
             kWithWait},
        Case{"RefusedOnceJoined", {Joined(), Exhausted(reason::kOutOfBlocks)}, "nothing explains"},
        Case{"NoTimeout",
             {Failed(absl::StatusCode::kDeadlineExceeded, reason::kDeadlineExpired)},
             "nothing explains"},
        Case{"TimeoutTooEarly",
             {Failed(absl::StatusCode::kDeadlineExceeded, reason::kDeadlineExpired)},
             "too early",
             End::kFault,
             kWithTimeout,
             false,
             49},
        Case{"Failure",
             {Joined(), Failed(absl::StatusCode::kDataLoss, reason::kNotANumber)},
             "nothing explains"}),
    [](const auto& tested) { return tested.param.name; });

TEST(RequestCheckTest, AStreamsEndMustExplainAnOpenRequest) {
  RequestCheck cut(Asked(), nullptr, {});
  EXPECT_EQ(cut.StreamEnded(/*explained=*/true), "");
  EXPECT_EQ(cut.end(), End::kCut);
  RequestCheck lost(Asked(), nullptr, {});
  EXPECT_NE(lost.StreamEnded(/*explained=*/false), "");
}

TEST(SoakScriptTest, IsAFunctionOfSeedAndNumber) {
  EXPECT_EQ(WriteScript(1, 7), WriteScript(1, 7));
  EXPECT_NE(WriteScript(1, 7), WriteScript(2, 7));
  EXPECT_NE(WriteScript(1, 7), WriteScript(1, 8));
}

TEST(SoakScriptTest, TheFirstStreamsAreOfEveryKind) {
  std::set<StreamKind> kinds;
  for (std::int64_t number = 0; number < static_cast<std::int64_t>(kStreamKinds); ++number) {
    kinds.insert(WriteScript(1, number).kind);
  }
  EXPECT_EQ(kinds.size(), kStreamKinds);
}

// What a reader is told fits into a stream's queue, so nobody who reads, however late, may lose his stream.
TEST(SoakScriptTest, NoReaderCanBeTooSlow) {
  constexpr std::int64_t kQueueMax = 4096;  // of docs/formats/decoding.md
  for (std::int64_t number = 0; number < 1000; ++number) {
    std::int64_t events = 0;
    for (const RequestScript& request : WriteScript(1, number).requests) events += request.limit + 2;
    EXPECT_LT(events, kQueueMax);
  }
}

TEST(SoakMemoryTest, GrowthLeavesOutTheWarmUp) {
  std::vector<std::int64_t> samples(40, 70);
  for (std::size_t i = 0; i < 10; ++i) samples[i] = 10;
  EXPECT_EQ(GrowthOf(samples, 100).from, 70);
  EXPECT_EQ(GrowthOf(samples, 100).to, 70);
  EXPECT_EQ(GrowthOf(samples, 5).from, 10);
  samples.resize(44, 90);
  EXPECT_EQ(GrowthOf(samples, 100).to, 90);
  EXPECT_EQ(GrowthOf({}, 100).to, 0);
}

}  // namespace
}  // namespace kvasir::soak
