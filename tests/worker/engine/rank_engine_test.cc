#include "worker/engine/rank_engine.h"

#include <gtest/gtest.h>

#include <functional>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

class RankEngineTest : public ::testing::Test {
 protected:
  RankEngineOptions Options() const {
    return {.plan = MakeEnginePlan({.max_requests = 2}),
            .plan_id = "small",
            .epoch = Epoch(1),
            .place = {},
            .target = SmallTarget(),
            .draft = SmallDraft(),
            .draft_override = {},
            .observe_pass = {}};
  }
  std::unique_ptr<Backend> backend_ = MakeCpuBackend({});
};

TEST_F(RankEngineTest, AllocatesTheArenaExactlyAndCapturesEveryGraph) {
  const RankEngineOptions options = Options();
  const auto engine = RankEngine::Create(*backend_, options);
  KVASIR_ASSERT_OK(engine);
  const RankMeasurement measured = (*engine)->measurement();
  EXPECT_EQ(measured.arena_bytes, options.plan.arena_bytes);
  EXPECT_EQ(static_cast<std::int64_t>((*engine)->arena().size()), options.plan.arena_bytes.value());
  EXPECT_EQ(measured.graphs, static_cast<std::int64_t>(options.plan.graphs.size()));
  EXPECT_GT(measured.weight_bytes, Bytes(0));
  EXPECT_GT(measured.scratch_bytes, Bytes(0));
}

TEST_F(RankEngineTest, RefusesOptionsThatContradictThePlan) {
  const auto expect_refused = [this](const std::function<void(RankEngineOptions&)>& spoil, const char* field,
                                     const char* message) {
    RankEngineOptions options = Options();
    spoil(options);
    const auto engine = RankEngine::Create(*backend_, std::move(options));
    EXPECT_THAT(engine, StatusIs(absl::StatusCode::kInvalidArgument, message));
    EXPECT_EQ(ErrorOf(engine.status()).field, field);
  };
  expect_refused([](RankEngineOptions& o) { o.place.rank = 1; }, "place", "rank 1 of tp 1");
  expect_refused([](RankEngineOptions& o) { o.place.topology.tp = 2; }, "place", "the plan has tp 1");
  expect_refused([](RankEngineOptions& o) { o.draft.reset(); }, "draft", "the plan drafts 3 tokens");
  expect_refused([](RankEngineOptions& o) { o.draft = SmallTarget(); }, "draft", "the plan drafts 3 tokens");
  expect_refused([](RankEngineOptions& o) { o.target.hidden = 64; }, "target",
                 "the plan names test/small-target");
  expect_refused([](RankEngineOptions& o) { o.draft->draft->mask_token = 3; }, "draft",
                 "the plan names test/small-draft");
  const Plan two_ranks = MakeEnginePlan({.topology = {.tp = 2}});
  expect_refused(
      [&](RankEngineOptions& o) {
        o.plan = two_ranks;
        o.place.topology = two_ranks.topology;
      },
      "communicator", "rank 0 of 1, want rank 0 of 2");
}

TEST_F(RankEngineTest, RefusesAStepThatIsNotItsNext) {
  const auto engine = RankEngine::Create(*backend_, Options());
  KVASIR_ASSERT_OK(engine);
  const auto scheduler = *Scheduler::Create(Options().plan, "small", Epoch(1), kSmallVocab);
  KVASIR_ASSERT_OK(scheduler->Join({.prompt = MakePrompt(3, 1), .max_tokens = 8}));
  const StepPlan good = *scheduler->NextStep();
  const auto expect_refused = [&](const std::function<void(StepPlan&)>& spoil, absl::StatusCode code,
                                  const char* why, const char* message) {
    StepPlan step = good;
    spoil(step);
    const auto answer = (*engine)->Execute(step);
    EXPECT_THAT(answer, StatusIs(code, message));
    EXPECT_EQ(ReasonOf(answer.status()), why);
  };
  constexpr absl::StatusCode kState = absl::StatusCode::kFailedPrecondition;
  expect_refused([](StepPlan& s) { s.epoch = Epoch(2); }, kState, reason::kNotRunning, "step of epoch 2");
  expect_refused([](StepPlan& s) { s.plan_id = "x"; }, kState, reason::kNotRunning,
                 "plan x; this rank runs epoch 1");
  expect_refused([](StepPlan& s) { s.step = 1; }, kState, reason::kStepOutOfOrder, "step 1; the next is 0");
  expect_refused([](StepPlan& s) { s.sequences[0].blocks[0][0] = BlockId(1); },
                 absl::StatusCode::kInvalidArgument, reason::kValueOutOfRange, "blocks[tokens][0]: 1");
  KVASIR_ASSERT_OK((*engine)->Execute(good));  // none of them used the number up
  expect_refused([](StepPlan&) {}, kState, reason::kStepOutOfOrder, "step 0; the next is 1");
}

// A parent that changes its pool is zeroed before the step's passes write to it.
TEST_F(RankEngineTest, ZeroesAParentThatChangesItsPool) {
  auto rig = EngineRig::Create({.plan = MakeEnginePlan({.parents = 8, .one_pool = false})});
  KVASIR_ASSERT_OK(rig);
  const auto first = (*rig)->scheduler().Join({.prompt = MakePrompt(2, 1), .max_tokens = 10});
  KVASIR_ASSERT_OK(first);
  KVASIR_ASSERT_OK((*rig)->Step());
  KVASIR_ASSERT_OK((*rig)->scheduler().Cancel(*first));
  KVASIR_ASSERT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(2, 1), .max_tokens = 22}));
  KVASIR_ASSERT_OK((*rig)->Step());
  ASSERT_EQ((*rig)->last_step().zero_parents, std::vector<ParentId>{ParentId(2)});
  const auto parent = static_cast<std::size_t>((*rig)->plan().parent_bytes.value());
  const std::span<std::byte> zeroed = (*rig)->engine(0).arena().subspan(2 * parent, parent);
  EXPECT_TRUE(std::all_of(zeroed.begin(), zeroed.end(), [](std::byte b) { return b == std::byte{0}; }));
  KVASIR_EXPECT_OK((*rig)->Drain());
}

// Stop tokens, a single output token, and an output that fills the whole context.
TEST_F(RankEngineTest, EndsSequencesWhereTheyEnd) {
  const Plan plan = MakeEnginePlan({});
  auto rig = EngineRig::Create({.plan = plan});
  KVASIR_ASSERT_OK(rig);
  const Tokens32 prompt = MakePrompt(5, 4);
  const auto whole = DecodeAll(**rig, {prompt}, plan.context_tokens - 5, true);
  KVASIR_ASSERT_OK(whole);
  EXPECT_EQ(static_cast<std::int64_t>((*whole)[0].size()), plan.context_tokens - 5);
  const auto one = DecodeAll(**rig, {prompt}, 1, true);
  KVASIR_ASSERT_OK(one);
  EXPECT_EQ((*one)[0], Tokens32{(*whole)[0][0]});
  const std::int32_t stop = (*whole)[0][6];
  const auto id = (*rig)->scheduler().Join({.prompt = prompt, .max_tokens = 30, .stop_tokens = {stop}});
  KVASIR_ASSERT_OK(id);
  const auto tokens = (*rig)->Drain();
  KVASIR_ASSERT_OK(tokens);
  const auto end = std::find((*whole)[0].begin(), (*whole)[0].end(), stop);
  EXPECT_EQ(tokens->at(*id), Tokens32((*whole)[0].begin(), end + 1));
}

}  // namespace
}  // namespace kvasir::testing
