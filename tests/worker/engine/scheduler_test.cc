#include "worker/engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::kSmallVocab;
using testing::MakeEnginePlan;
using testing::StatusIs;
using Tokens = std::vector<std::int32_t>;

std::unique_ptr<Scheduler> MakeScheduler(const Plan& plan) {
  auto scheduler = Scheduler::Create(plan, "plan", Epoch(3), kSmallVocab);
  EXPECT_THAT(scheduler, testing::IsOk());
  return *std::move(scheduler);
}

SequenceRequest Request(std::int64_t prompt, std::int64_t max_tokens, bool speculate = true) {
  return SequenceRequest{.prompt = Tokens(static_cast<std::size_t>(prompt), 5),
                         .max_tokens = max_tokens,
                         .speculate = speculate};
}

// An outcome in which sequence i of the step had `accepted` drafts and each emitted token is `token`.
StepOutcome OutcomeOf(const StepPlan& step, std::int64_t draft_tokens, std::int64_t accepted,
                      std::int32_t token) {
  StepOutcome outcome{.step = step.step};
  for (const StepSequence& part : step.sequences) {
    SequenceOutcome its{.id = part.id};
    if (step.kind == StepKind::kSpeculate) {
      its.drafted = std::min(draft_tokens, part.limit - 1 - part.committed);
      its.accepted = std::min(accepted, its.drafted);
    }
    const bool samples = step.kind != StepKind::kPrefill || part.last_chunk;
    if (samples) its.emitted.assign(static_cast<std::size_t>(its.accepted + 1), token);
    if (samples && part.sampling.logprobs) its.logprobs.assign(its.emitted.size(), -0.5F);
    outcome.sequences.push_back(its);
  }
  return outcome;
}

TEST(SchedulerTest, PrefillsInChunksAtFixedMultiplesOldestFirst) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({}));  // chunks of 8
  KVASIR_ASSERT_OK(scheduler->Join(Request(17, 4)));
  KVASIR_ASSERT_OK(scheduler->Join(Request(8, 4)));
  struct Want {
    std::int64_t id, committed, tokens;
    bool last;
  };
  std::int64_t number = 0;
  for (const Want& want :
       {Want{0, 0, 8, false}, Want{0, 8, 8, false}, Want{0, 16, 1, true}, Want{1, 0, 8, true}}) {
    if (want.id == 1) {  // the first one decodes once before the other's chunk
      KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 0, 7)));
      ++number;
    }
    const auto step = scheduler->NextStep();
    ASSERT_TRUE(step.has_value());
    EXPECT_EQ(step->step, number++);
    EXPECT_EQ(step->epoch, Epoch(3));
    EXPECT_EQ(step->plan_id, "plan");
    ASSERT_EQ(step->kind, StepKind::kPrefill);
    ASSERT_EQ(step->sequences.size(), 1U);
    EXPECT_EQ(step->sequences[0].id, SequenceId(want.id));
    EXPECT_EQ(step->sequences[0].committed, want.committed);
    EXPECT_EQ(static_cast<std::int64_t>(step->sequences[0].tokens.size()), want.tokens);
    EXPECT_EQ(step->sequences[0].last_chunk, want.last);
    const auto progress = scheduler->Apply(OutcomeOf(*step, 3, 0, 7));
    KVASIR_ASSERT_OK(progress);
    EXPECT_EQ((*progress)[0].tokens, want.last ? Tokens{7} : Tokens{});
  }
  const auto step = scheduler->NextStep();
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->kind, StepKind::kSpeculate);
  ASSERT_EQ(step->sequences.size(), 2U);
  EXPECT_EQ(step->sequences[0].committed, 18);
  EXPECT_EQ(step->sequences[0].tokens, Tokens{7});  // the anchor
  EXPECT_EQ(step->sequences[1].committed, 8);
}

TEST(SchedulerTest, CountsCommittedTokensAsTheDesignSays) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 3}));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 20)));
  auto step = scheduler->NextStep();
  KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 3, 0, 1)));
  std::int64_t committed = 4;
  for (const std::int64_t accepted : {0, 3, 1, 2}) {
    step = scheduler->NextStep();
    ASSERT_EQ(step->sequences[0].committed, committed);
    const auto progress = scheduler->Apply(OutcomeOf(*step, 3, accepted, 2));
    KVASIR_ASSERT_OK(progress);
    EXPECT_EQ((*progress)[0].accepted, accepted);
    EXPECT_EQ((*progress)[0].drafted, 3);
    committed += 1 + accepted;
  }
}

TEST(SchedulerTest, CutsWhatIsEmittedAtTheLimit) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 3}));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 3)));
  auto step = scheduler->NextStep();
  KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 3, 0, 1)));
  step = scheduler->NextStep();
  // Two tokens are missing, so two drafts are valid; all accepted, the verify emits three.
  const StepOutcome outcome = OutcomeOf(*step, 3, 3, 2);
  EXPECT_EQ(outcome.sequences[0].drafted, 2);
  const auto progress = scheduler->Apply(outcome);
  KVASIR_ASSERT_OK(progress);
  EXPECT_EQ((*progress)[0].tokens, (Tokens{2, 2}));
  EXPECT_TRUE((*progress)[0].finished);
  EXPECT_EQ(scheduler->running(), 0);
  EXPECT_FALSE(scheduler->NextStep().has_value());
}

TEST(SchedulerTest, EndsAtAStopTokenAndReportsIt) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 3}));
  SequenceRequest request = Request(4, 20);
  request.stop_tokens = {9};
  KVASIR_ASSERT_OK(scheduler->Join(request));
  auto step = scheduler->NextStep();
  KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 3, 0, 1)));
  step = scheduler->NextStep();
  StepOutcome outcome = OutcomeOf(*step, 3, 3, 2);
  outcome.sequences[0].emitted = {2, 9, 4, 5};
  const auto progress = scheduler->Apply(outcome);
  KVASIR_ASSERT_OK(progress);
  EXPECT_EQ((*progress)[0].tokens, (Tokens{2, 9}));
  EXPECT_EQ((*progress)[0].drafted, 3);
  EXPECT_EQ((*progress)[0].accepted, 2);  // the third was accepted too, and is not told
  EXPECT_TRUE((*progress)[0].finished);
}

TEST(SchedulerTest, SpeculatingAndPlainSequencesTakeTurns) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 3}));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 20, true)));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 20, false)));
  std::vector<StepKind> kinds;
  for (int i = 0; i < 6; ++i) {
    const auto step = scheduler->NextStep();
    ASSERT_TRUE(step.has_value());
    kinds.push_back(step->kind);
    KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 3, 0, 1)));
  }
  EXPECT_EQ(kinds, (std::vector<StepKind>{StepKind::kPrefill, StepKind::kSpeculate, StepKind::kPrefill,
                                          StepKind::kSpeculate, StepKind::kDecode, StepKind::kSpeculate}));
}

// However many long prompts wait, a running sequence decodes after each chunk.
TEST(SchedulerTest, AtMostOneChunkBetweenTwoStepsOfARunningSequence) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 3, .parents = 100}));
  const auto speculating = scheduler->Join(Request(4, 60, true));
  const auto plain = scheduler->Join(Request(4, 60, false));
  KVASIR_ASSERT_OK(speculating);
  KVASIR_ASSERT_OK(plain);
  for (int i = 0; i < 4; ++i) KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 0, 1)));
  KVASIR_ASSERT_OK(scheduler->Join(Request(80, 4)));
  KVASIR_ASSERT_OK(scheduler->Join(Request(80, 4)));
  std::map<SequenceId, int> chunks_since;
  int chunks = 0;
  for (int i = 0; i < 60; ++i) {
    const auto step = scheduler->NextStep();
    ASSERT_TRUE(step.has_value());
    if (step->kind == StepKind::kPrefill) {
      ++chunks;
      for (const SequenceId id : {*speculating, *plain}) EXPECT_LE(++chunks_since[id], 1) << id.value();
    } else {
      for (const StepSequence& part : step->sequences) chunks_since[part.id] = 0;
    }
    KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 3, 0, 1)));
  }
  EXPECT_EQ(chunks, 20);
}

TEST(SchedulerTest, CarriesSamplingToEveryStepAndLogprobsBack) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 3}));
  SequenceRequest request = Request(12, 20);
  request.sampling = {.temperature = 0.5, .top_k = 7, .top_p = 0.9, .seed = 11, .logprobs = true};
  request.stop_tokens = {9};
  KVASIR_ASSERT_OK(scheduler->Join(request));
  for (int i = 0; i < 3; ++i) {
    const auto step = scheduler->NextStep();
    ASSERT_TRUE(step.has_value());
    EXPECT_EQ(step->sequences[0].sampling, request.sampling);
    StepOutcome outcome = OutcomeOf(*step, 3, 2, 1);
    if (i == 2) {
      outcome.sequences[0].emitted = {1, 9, 1};
      outcome.sequences[0].logprobs.pop_back();
      EXPECT_THAT(scheduler->Apply(outcome), StatusIs(absl::StatusCode::kInvalidArgument, "2 log-prob"));
      outcome.sequences[0].logprobs = {-1, -2, -3};
    }
    const auto progress = scheduler->Apply(outcome);
    KVASIR_ASSERT_OK(progress);
    const std::vector<std::vector<float>> want = {{}, {-0.5F}, {-1, -2}};
    EXPECT_EQ((*progress)[0].logprobs, want[static_cast<std::size_t>(i)]);
  }
  request.sampling.top_p = 2;
  const auto refused = scheduler->Join(request);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, "sampling.top_p: 2"));
  EXPECT_EQ(ErrorOf(refused.status()).field, "sampling.top_p");
}

TEST(SchedulerTest, WithoutADraftEverySequenceDecodes) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.draft_tokens = 0}));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 20, true)));
  auto step = scheduler->NextStep();
  KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 0, 0, 1)));
  step = scheduler->NextStep();
  EXPECT_EQ(step->kind, StepKind::kDecode);
}

// The reserve is exactly prompt + max_tokens, per rank-local tokens.
TEST(SchedulerTest, ReservesPromptAndOutputInWholeColumns) {
  struct Case {
    std::int64_t dcp, tokens, columns;
  };
  for (const Case& c :
       {Case{1, 4, 1}, Case{1, 5, 2}, Case{2, 8, 1}, Case{2, 9, 2}, Case{4, 16, 1}, Case{4, 17, 2}}) {
    const auto scheduler = MakeScheduler(MakeEnginePlan({.topology = {.tp = 4, .dcp = c.dcp}}));
    KVASIR_ASSERT_OK(scheduler->Join(Request(2, c.tokens - 2)));
    const auto step = scheduler->NextStep();
    EXPECT_EQ(step->sequences[0].limit, c.tokens);
    ASSERT_EQ(step->sequences[0].blocks.size(), 1U);
    EXPECT_EQ(static_cast<std::int64_t>(step->sequences[0].blocks[0].size()), c.columns);
  }
}

TEST(SchedulerTest, RefusesWhatCanNeverRun) {
  // 2 parents of 3 blocks of 4 tokens: 24 tokens at most.
  const auto scheduler = MakeScheduler(MakeEnginePlan({.parents = 3}));
  struct Case {
    SequenceRequest request;
    const char* field;
    const char* message;
  };
  SequenceRequest bad_prompt = Request(4, 4);
  bad_prompt.prompt[2] = kSmallVocab;
  SequenceRequest bad_stop = Request(4, 4);
  bad_stop.stop_tokens = {-1};
  const std::vector<Case> cases = {
      {Request(0, 4), "prompt", "at least 1"},
      {Request(4, 0), "max_tokens", "max_tokens: 0, want at least 1"},
      {Request(4, -5), "max_tokens", "max_tokens: -5"},
      {Request(4, INT64_MAX), "max_tokens", "<= 96, the plan's context"},
      {Request(96, 1), "prompt", "fewer than 96"},
      {Request(4, 21), "max_tokens",
       "25 tokens can never be admitted by this plan: pool tokens: short by 1 blocks"},
      {bad_prompt, "prompt[2]", "token 96, want 0 .. 95"},
      {bad_stop, "stop_tokens[0]", "token -1"},
  };
  for (const Case& c : cases) {
    const auto joined = scheduler->Join(c.request);
    EXPECT_THAT(joined, StatusIs(absl::StatusCode::kInvalidArgument, c.message));
    EXPECT_EQ(ErrorOf(joined.status()).field, c.field);
  }
  KVASIR_EXPECT_OK(scheduler->Join(Request(4, 20)));
  EXPECT_EQ(scheduler->running(), 1);
}

TEST(SchedulerTest, RefusesForNowWhatDoesNotFitNow) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.parents = 3, .max_requests = 2}));
  const auto first = scheduler->Join(Request(4, 12));
  KVASIR_ASSERT_OK(first);
  const auto blocks = scheduler->Join(Request(4, 8));
  EXPECT_THAT(blocks,
              StatusIs(absl::StatusCode::kResourceExhausted, "pool tokens: short by 1 blocks: 3 needed, 2"));
  EXPECT_EQ(ReasonOf(blocks.status()), reason::kOutOfBlocks);
  KVASIR_ASSERT_OK(scheduler->Join(Request(2, 2)));
  const auto many = scheduler->Join(Request(1, 1));
  EXPECT_THAT(many, StatusIs(absl::StatusCode::kResourceExhausted, "2 sequences run already"));
  EXPECT_EQ(ReasonOf(many.status()), reason::kTooManyRequests);
  KVASIR_ASSERT_OK(scheduler->Cancel(*first));
  KVASIR_EXPECT_OK(scheduler->Join(Request(4, 8)));
}

TEST(SchedulerTest, CancelFreesAtOnceAndTheOutcomeSkipsIt) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({}));
  const std::int64_t free = scheduler->free_parents();
  const auto a = scheduler->Join(Request(4, 8));
  const auto b = scheduler->Join(Request(4, 8));
  KVASIR_ASSERT_OK(a);
  KVASIR_ASSERT_OK(b);
  for (int i = 0; i < 3; ++i) KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 0, 1)));
  const auto step = scheduler->NextStep();
  ASSERT_EQ(step->sequences.size(), 2U);
  KVASIR_ASSERT_OK(scheduler->Cancel(*a));
  EXPECT_THAT(scheduler->Cancel(*a), StatusIs(absl::StatusCode::kNotFound, "sequence 0 is not running"));
  const auto progress = scheduler->Apply(OutcomeOf(*step, 3, 1, 1));
  KVASIR_ASSERT_OK(progress);
  ASSERT_EQ(progress->size(), 1U);
  EXPECT_EQ((*progress)[0].id, *b);
  KVASIR_ASSERT_OK(scheduler->Cancel(*b));
  EXPECT_EQ(scheduler->free_parents(), free);
  EXPECT_FALSE(scheduler->NextStep().has_value());
}

// Between any two steps, and while any step runs: in the prompt, while speculating, and with a neighbour that
// goes on undisturbed.
TEST(SchedulerTest, CancelAtAnyStepFreesEverything) {
  for (const bool in_flight : {false, true}) {
    for (int steps = 0; steps < 12; ++steps) {
      const auto scheduler = MakeScheduler(MakeEnginePlan({.one_pool = false}));
      const std::int64_t free = scheduler->free_parents();
      const auto neighbour = scheduler->Join(Request(4, 40, false));
      const std::int64_t free_beside = scheduler->free_parents();
      const auto cancelled = scheduler->Join(Request(20, 30));
      for (int i = 0; i < steps; ++i) {
        KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 1, 1)));
      }
      const auto step = in_flight ? scheduler->NextStep() : std::nullopt;
      KVASIR_ASSERT_OK(scheduler->Cancel(*cancelled));
      EXPECT_EQ(scheduler->free_parents(), free_beside) << steps;
      if (step.has_value()) {
        KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*step, 3, 1, 1)));
      }
      EXPECT_EQ(scheduler->running(), 1);
      KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 1, 1)));
      KVASIR_ASSERT_OK(scheduler->Cancel(*neighbour));
      EXPECT_EQ(scheduler->free_parents(), free) << steps;
    }
  }
}

// Each running sequence has a seat of its own, and keeps it; one that leaves gives its seat to the next to
// come.
TEST(SchedulerTest, SequencesKeepTheirSeats) {
  auto scheduler = *Scheduler::Create(MakeEnginePlan({.max_requests = 3}), "plan", Epoch(1), kSmallVocab);
  const auto join = [&scheduler] {
    return *scheduler->Join({.prompt = std::vector<std::int32_t>(3, 1), .max_tokens = 40});
  };
  std::map<SequenceId, std::int64_t> seats;
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      const StepPlan step = *scheduler->NextStep();
      StepOutcome outcome{.step = step.step};
      std::set<std::int64_t> taken;
      for (const StepSequence& part : step.sequences) {
        EXPECT_TRUE(taken.insert(part.seat).second);
        EXPECT_EQ(seats.try_emplace(part.id, part.seat).first->second, part.seat);
        outcome.sequences.push_back({.id = part.id, .emitted = {4}});
      }
      KVASIR_ASSERT_OK(scheduler->Apply(outcome));
    }
  };
  const SequenceId a = join();
  const SequenceId b = join();
  const SequenceId c = join();
  run(8);
  KVASIR_ASSERT_OK(scheduler->Cancel(b));
  const SequenceId d = join();
  run(4);
  EXPECT_EQ(seats, (std::map<SequenceId, std::int64_t>{{a, 0}, {b, 1}, {c, 2}, {d, 1}}));
}

TEST(SchedulerTest, AFailedStepCancelsItsSequencesOnly) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({}));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 8, true)));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 8, false)));
  for (int i = 0; i < 3; ++i) KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 0, 1)));
  const auto failing = scheduler->NextStep();
  EXPECT_EQ(scheduler->FailStep(), std::vector<SequenceId>{failing->sequences[0].id});
  const auto next = scheduler->NextStep();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->step, failing->step + 1);
  EXPECT_NE(next->sequences[0].id, failing->sequences[0].id);
  EXPECT_EQ(scheduler->running(), 1);
}

TEST(SchedulerTest, RefusesAnOutcomeThatDoesNotFitAndKeepsTheStep) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({}));
  EXPECT_THAT(scheduler->Apply(StepOutcome{}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "no step is out"));
  KVASIR_ASSERT_OK(scheduler->Join(Request(4, 8)));
  KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(*scheduler->NextStep(), 3, 0, 1)));
  const auto step = scheduler->NextStep();
  const StepOutcome good = OutcomeOf(*step, 3, 2, 1);
  const auto expect_refused = [&](const std::function<void(StepOutcome&)>& spoil) {
    StepOutcome bad = good;
    spoil(bad);
    EXPECT_THAT(scheduler->Apply(bad), StatusIs(absl::StatusCode::kInvalidArgument, "outcome"));
  };
  expect_refused([](StepOutcome& o) { ++o.step; });
  expect_refused([](StepOutcome& o) { o.sequences.clear(); });
  expect_refused([](StepOutcome& o) { o.sequences[0].id = SequenceId(99); });
  expect_refused([](StepOutcome& o) { o.sequences[0].accepted = 4; });
  expect_refused([](StepOutcome& o) { o.sequences[0].accepted = -1; });
  expect_refused([](StepOutcome& o) { o.sequences[0].drafted = 4; });
  expect_refused([](StepOutcome& o) { o.sequences[0].drafted = 1; });  // fewer than were accepted
  expect_refused([](StepOutcome& o) { o.sequences[0].emitted.pop_back(); });
  expect_refused([](StepOutcome& o) { o.sequences[0].emitted[0] = kSmallVocab; });
  KVASIR_EXPECT_OK(scheduler->Apply(good));
}

TEST(SchedulerTest, ReportsParentsThatChangeTheirPoolInTheNextStep) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.parents = 8, .one_pool = false}));
  // 3 blocks of each pool: the target's take parent 1, the draft's parent 2.
  KVASIR_ASSERT_OK(scheduler->Join(Request(2, 10)));
  EXPECT_TRUE(scheduler->NextStep()->zero_parents.empty());
  EXPECT_EQ(scheduler->FailStep().size(), 1U);
  // 6 blocks of each: parents 1 and 2 for the target now, 3 and 4 for the draft.
  KVASIR_ASSERT_OK(scheduler->Join(Request(2, 22)));
  EXPECT_EQ(scheduler->NextStep()->zero_parents, std::vector<ParentId>{ParentId(2)});
}

TEST(SchedulerTest, EmptiesAParentAStepForWhoeverWaits) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.parents = 9, .one_pool = false}));
  // One block of each pool for each: parents 1 and 3 are the target's, 2 and 4 the draft's.
  std::vector<SequenceId> ids;
  ids.reserve(4);
  for (int i = 0; i < 4; ++i) ids.push_back(*scheduler->Join(Request(1, 3)));
  KVASIR_ASSERT_OK(scheduler->Cancel(ids[1]));
  KVASIR_ASSERT_OK(scheduler->Cancel(ids[2]));
  const SequenceRequest large = Request(20, 28);
  EXPECT_THAT(scheduler->Join(large), StatusIs(absl::StatusCode::kResourceExhausted, "short by"));
  const auto next = [&scheduler] {
    StepPlan step = *scheduler->NextStep();
    KVASIR_EXPECT_OK(scheduler->Apply(OutcomeOf(step, 3, 0, 7)));
    return step;
  };
  scheduler->MakeRoomFor(large);
  EXPECT_EQ(next().move, (ParentMove{PoolId(1), ParentId(4), {{BlockId(12), BlockId(7)}}}));
  EXPECT_EQ(scheduler->free_parents(), 5);
  scheduler->MakeRoomFor(large);
  EXPECT_EQ(next().move, (ParentMove{PoolId(0), ParentId(3), {{BlockId(9), BlockId(4)}}}));
  scheduler->MakeRoomFor(large);
  const StepPlan step = next();
  EXPECT_FALSE(step.move.has_value()) << "each pool stands in one parent";
  ASSERT_EQ(step.sequences[0].id, ids[3]);
  EXPECT_EQ(step.sequences[0].blocks, (std::vector<std::vector<BlockId>>{{BlockId(4)}, {BlockId(7)}}));
  EXPECT_EQ(scheduler->free_parents(), 6);
}

// Asked where nothing runs, it is not remembered for others.
TEST(SchedulerTest, ARequestThatIsGoneGetsNoRoom) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.parents = 9, .one_pool = false}));
  scheduler->MakeRoomFor(Request(20, 28));
  EXPECT_FALSE(scheduler->NextStep().has_value());
  for (int i = 0; i < 4; ++i) KVASIR_ASSERT_OK(scheduler->Join(Request(1, 3)));
  KVASIR_ASSERT_OK(scheduler->Cancel(SequenceId(1)));
  KVASIR_ASSERT_OK(scheduler->Cancel(SequenceId(2)));
  EXPECT_FALSE(scheduler->NextStep()->move.has_value());
}

TEST(SchedulerTest, NothingMovesUnasked) {
  const auto scheduler = MakeScheduler(MakeEnginePlan({.parents = 9, .one_pool = false}));
  for (int i = 0; i < 4; ++i) KVASIR_ASSERT_OK(scheduler->Join(Request(1, 3)));
  KVASIR_ASSERT_OK(scheduler->Cancel(SequenceId(1)));
  KVASIR_ASSERT_OK(scheduler->Cancel(SequenceId(2)));
  EXPECT_THAT(scheduler->Join(Request(20, 28)), StatusIs(absl::StatusCode::kResourceExhausted, "short by"));
  EXPECT_FALSE(scheduler->NextStep()->move.has_value());
}

}  // namespace
}  // namespace kvasir
