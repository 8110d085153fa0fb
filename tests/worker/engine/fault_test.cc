// What a broken device or a NaN does: a typed error on every rank, nothing leaked, and a way on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/geometry/bf16.h"
#include "common/geometry/block_address.h"
#include "common/geometry/context_shard.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"
#include "worker/engine/arena_layout.h"

namespace kvasir::testing {
namespace {

struct Case {
  Topology topology;
  std::optional<StateRollback> rollback = std::nullopt;  // of a hybrid target; nullopt: MLA alone
};

std::string NameOfCase(const Case& c) {
  return absl::StrFormat(
      "tp%d_dcp%d%s", c.topology.tp, c.topology.dcp,
      c.rollback.has_value() ? absl::StrFormat("_%s", StateRollbackName(*c.rollback)) : "");
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

Plan PlanOf(const Case& c) {
  return MakeEnginePlan({.topology = c.topology,
                         .hybrid = c.rollback.has_value(),
                         .rollback = c.rollback.value_or(StateRollback::kSnapshots)});
}

// Steps until the sequence decodes.
void Prefill(EngineRig& rig) {
  for (;;) {
    const auto progress = rig.Step();
    KVASIR_ASSERT_OK(progress);
    ASSERT_TRUE(progress->has_value());
    if (rig.last_step().kind != StepKind::kPrefill) return;
  }
}

class NanTest : public ::testing::TestWithParam<Case> {
 protected:
  // Plants NaN on rank `victim` before a speculative step; all ranks fail it in `pass`, and go on.
  static void ExpectFault(std::int64_t victim, Role role, std::optional<Mixer> mixer, const char* pass);
};

void NanTest::ExpectFault(std::int64_t victim, Role role, std::optional<Mixer> mixer, const char* pass) {
  SCOPED_TRACE(absl::StrFormat("%s pages of rank %d", RoleName(role), victim));
  auto rig = EngineRig::Create({.plan = PlanOf(GetParam())});
  KVASIR_ASSERT_OK(rig);
  KVASIR_ASSERT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(20, 1), .max_tokens = 20}));
  ASSERT_NO_FATAL_FAILURE(Prefill(**rig));
  (*rig)->PlantNan(victim, (*rig)->last_step().sequences[0], role, mixer);
  const std::optional<StepPlan> step = (*rig)->scheduler().NextStep();
  ASSERT_TRUE(step.has_value());
  const auto answers = (*rig)->ExecuteOnAll(*step);
  for (const auto& answer : answers) {
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kDataLoss, ": NON_FINITE: "));
    EXPECT_EQ(ReasonOf(answer.status()), reason::kNotANumber);
    EXPECT_EQ(answer.status(), answers[0].status());
  }
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kDataLoss, pass));
  // Engines and communicators go on: another sequence decodes, over the same blocks.
  EXPECT_EQ((*rig)->scheduler().FailStep().size(), 1U);
  const auto again = DecodeAll(**rig, {MakePrompt(20, 2)}, 12, true);
  KVASIR_ASSERT_OK(again);
  auto fresh = EngineRig::Create({.plan = (*rig)->plan()});
  KVASIR_ASSERT_OK(fresh);
  const auto want = DecodeAll(**fresh, {MakePrompt(20, 2)}, 12, true);
  KVASIR_ASSERT_OK(want);
  EXPECT_EQ(*again, *want);
}

// Every rank's pages are needed: a NaN in those of any one rank, target's or draft's, attention's or
// recurrent, fails the step on all.
TEST_P(NanTest, InAnyOneRanksLivePagesFailsTheStepEverywhere) {
  for (std::int64_t victim = 0; victim < GetParam().topology.tp; ++victim) {
    ASSERT_NO_FATAL_FAILURE(ExpectFault(victim, Role::kTarget, Mixer::kAttention, "target_verify"));
    ASSERT_NO_FATAL_FAILURE(ExpectFault(victim, Role::kDraft, std::nullopt, "draft_block"));
    if (!GetParam().rollback.has_value()) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectFault(victim, Role::kTarget, Mixer::kRecurrent, "target_verify"));
  }
}

// What a failed sequence left in its seat, where a chain draft starts from, is nobody else's: not even
// padding reads it.
TEST(ChainDraftFaultTest, AFreedSeatsStateHarmsNobody) {
  auto rig = EngineRig::Create({.plan = MakeEnginePlan({.mtp = true})});
  KVASIR_ASSERT_OK(rig);
  Scheduler& scheduler = (*rig)->scheduler();
  std::vector<Tokens32> prompts;
  for (std::int64_t i = 0; i < 4; ++i) {
    prompts.push_back(MakePrompt(7, i));
    KVASIR_ASSERT_OK(scheduler.Join({.prompt = prompts.back(), .max_tokens = 20}));
  }
  // The first one, in seat 0, fails alone, before the others have begun.
  const auto prefilled = (*rig)->Step();
  KVASIR_ASSERT_OK(prefilled);
  ASSERT_EQ((*rig)->last_step().kind, StepKind::kPrefill);
  (*rig)->PlantNan(0, (*rig)->last_step().sequences[0], Role::kTarget);
  const std::optional<StepPlan> step = scheduler.NextStep();
  ASSERT_TRUE(step.has_value());
  ASSERT_EQ(step->kind, StepKind::kSpeculate);
  EXPECT_THAT((*rig)->ExecuteOnAll(*step)[0], StatusIs(absl::StatusCode::kDataLoss, "target_verify"));
  ASSERT_EQ(scheduler.FailStep().size(), 1U);
  // Three run in seats 1 to 3, in graphs of four.
  const auto tokens = (*rig)->Drain();
  KVASIR_ASSERT_OK(tokens);
  auto fresh = EngineRig::Create({.plan = (*rig)->plan()});
  KVASIR_ASSERT_OK(fresh);
  const auto want = DecodeAll(**fresh, {prompts[1], prompts[2], prompts[3]}, 20, true);
  KVASIR_ASSERT_OK(want);
  for (std::int64_t i = 1; i < 4; ++i) {
    EXPECT_EQ(tokens->at(SequenceId(i)), want->at(static_cast<std::size_t>(i - 1)));
  }
}

// The counter-proof: with a context of 20 tokens each rank holds exactly its share of them, and nothing else.
TEST_P(NanTest, EachRankHoldsItsShareOfTheContext) {
  auto rig = EngineRig::Create({.plan = PlanOf(GetParam())});
  KVASIR_ASSERT_OK(rig);
  KVASIR_ASSERT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(20, 1), .max_tokens = 20}));
  while ((*rig)->last_step().sequences.empty() || !(*rig)->last_step().sequences[0].last_chunk) {
    KVASIR_ASSERT_OK((*rig)->Step());
  }
  const Plan& plan = (*rig)->plan();
  const PlanPool& pool = plan.pools[0];
  for (std::int64_t rank = 0; rank < GetParam().topology.tp; ++rank) {
    const ContextShard shard = ShardOf(pool, RankPlace{.rank = rank, .topology = GetParam().topology});
    for (const PlanGroup& group : pool.groups) {
      const PageGeometry page = PageGeometryOf(pool, group.layers[0]);
      std::int64_t written = 0;
      for (const BlockId block : (*rig)->last_step().sequences[0].blocks[0]) {
        for (std::int64_t row = 0; row < pool.block_tokens; ++row) {
          const std::byte* at =
              (*rig)->engine(rank).arena().data() + SlotOffset(page, SlotOf(page, block.value(), row));
          // The arena was filled with 0xff: a row that starts otherwise was written.
          written += at[0] != std::byte{0xff} || at[1] != std::byte{0xff} ? 1 : 0;
        }
      }
      EXPECT_EQ(written, LocalLength(shard, 20)) << group.name << " on rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, NanTest,
                         ::testing::Values(Case{{1, 1, 1}}, Case{{2, 1, 1}}, Case{{2, 2, 1}}, Case{{4, 2, 1}},
                                           Case{{4, 4, 1}}, Case{{1, 1, 1}, StateRollback::kSnapshots},
                                           Case{{1, 1, 1}, StateRollback::kReplay},
                                           Case{{4, 2, 1}, StateRollback::kReplay}),
                         [](const auto& its) { return NameOfCase(its.param); });

class BrokenBackendTest : public ::testing::Test {
 protected:
  RankEngineOptions Options() const {
    return {.plan = plan_,
            .plan_id = "small",
            .epoch = Epoch(1),
            .place = {},
            .target = SmallTarget(),
            .draft = SmallDraft(),
            .draft_override = {},
            .observe_pass = {}};
  }

  // A prefill, two speculative steps and a plain one.
  absl::Status RunSomeSteps(RankEngine& engine) {
    auto scheduler = *Scheduler::Create(plan_, "small", Epoch(1), kSmallVocab);
    for (const bool speculate : {true, false}) {
      const auto id = scheduler->Join({.prompt = MakePrompt(3, 1), .max_tokens = 30, .speculate = speculate});
      if (!id.ok()) return id.status();
    }
    std::set<StepKind> kinds;
    for (int i = 0; i < 6; ++i) {
      const auto step = scheduler->NextStep();
      kinds.insert(step->kind);
      const auto outcome = engine.Execute(*step);
      if (!outcome.ok()) {
        // A broken engine says so until it is prepared again.
        EXPECT_THAT(engine.Execute(*step),
                    StatusIs(absl::StatusCode::kFailedPrecondition,
                             "the engine broke and must be prepared again: rank 0: step"));
        return outcome.status();
      }
      const auto applied = scheduler->Apply(*outcome);
      if (!applied.ok()) return applied.status();
    }
    EXPECT_EQ(kinds.size(), 3U);
    return absl::OkStatus();
  }

  void ExpectNothingAlive() {
    EXPECT_EQ(backend_.live_allocations(), 0);
    EXPECT_EQ(backend_.live_graphs(), 0);
  }

  Plan plan_ = MakeEnginePlan({.parents = 20, .max_requests = 2});
  std::unique_ptr<Backend> cpu_ = MakeCpuBackend({});
  FaultBackend backend_{*cpu_};
};

// Fails the n-th call of Create, for every n.
TEST_F(BrokenBackendTest, EveryCallOfCreateMayFail) {
  std::int64_t call = 1;
  for (;; ++call) {
    SCOPED_TRACE(call);
    backend_.FailCall(call);
    const auto engine = RankEngine::Create(backend_, Options());
    if (!backend_.fired()) {
      KVASIR_EXPECT_OK(engine);
      break;
    }
    EXPECT_THAT(engine, StatusIs(absl::StatusCode::kAborted, "planted fault at "));
    ExpectNothingAlive();
    ASSERT_LT(call, 10000);
  }
  // Arena, inputs, results, weights, scratch; each weight; each graph.
  EXPECT_GT(call, 5 + static_cast<std::int64_t>(plan_.graphs.size()));
  ExpectNothingAlive();
  backend_.FailCall(0);
  const auto next = RankEngine::Create(backend_, Options());
  KVASIR_ASSERT_OK(next);
  KVASIR_EXPECT_OK(RunSomeSteps(**next));
}

// Fails the n-th call of a few steps, for every n.
TEST_F(BrokenBackendTest, EveryCallOfAStepMayFail) {
  for (std::int64_t call = 1;; ++call) {
    SCOPED_TRACE(call);
    {
      backend_.FailCall(0);
      const auto engine = RankEngine::Create(backend_, Options());
      KVASIR_ASSERT_OK(engine);
      backend_.FailCall(call);
      const absl::Status ran = RunSomeSteps(**engine);
      if (!backend_.fired()) {
        KVASIR_EXPECT_OK(ran);
        EXPECT_GT(call, 40);  // upload, replay, read of each pass
        break;
      }
      EXPECT_THAT(ran, StatusIs(absl::StatusCode::kAborted, "planted fault at "));
    }
    ExpectNothingAlive();
    ASSERT_LT(call, 1000);
  }
}

// A rank whose device breaks in the middle of a step takes nobody with it into a hang.
TEST_F(BrokenBackendTest, OneBrokenRankFailsTheStepOnAll) {
  const Plan plan = MakeEnginePlan({.topology = {.tp = 4, .dcp = 2}, .max_requests = 2});
  for (const std::int64_t call : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
    SCOPED_TRACE(call);
    auto rig = EngineRig::Create({.plan = plan});
    KVASIR_ASSERT_OK(rig);
    KVASIR_ASSERT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(3, 1), .max_tokens = 12}));
    KVASIR_ASSERT_OK((*rig)->Step());
    const std::optional<StepPlan> step = (*rig)->scheduler().NextStep();
    ASSERT_EQ(step->kind, StepKind::kSpeculate);
    (*rig)->backend(2).FailCall(call);
    const auto answers = (*rig)->ExecuteOnAll(*step);
    ASSERT_TRUE((*rig)->backend(2).fired());
    for (const auto& answer : answers) EXPECT_FALSE(answer.ok());
    EXPECT_THAT(answers[2], StatusIs(absl::StatusCode::kAborted, "rank 2: step 1: planted fault at "));
    EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kCancelled, "rank 0: step 1: "));
  }
}

// Of the reads of N values after a drafted block the first are the tokens, the second the confidences: rank 1
// has lost hope. The others verify no more than it, so that all run passes of one shape, and output stays the
// same.
TEST_F(BrokenBackendTest, RanksVerifyWhatTheLeastOfThemChose) {
  constexpr std::int64_t kDrafted = 3;
  const Plan plan = MakeEnginePlan({.topology = {.tp = 2, .dcp = 2}, .draft_tokens = kDrafted});
  const auto decode = [&](bool hopeless, std::int64_t* drafted) {
    auto rig = EngineRig::Create({.plan = plan, .costs = {{.fixed = 1000, .row = 1}}});
    KVASIR_EXPECT_OK(rig);
    KVASIR_EXPECT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(5, 1), .max_tokens = 12}));
    int reads = 0;
    if (hopeless) {
      (*rig)->backend(1).ChangeReads([&reads](std::span<std::byte> bytes) {
        if (bytes.size() != kDrafted * sizeof(float)) return;
        if (++reads % 2 == 0) std::fill(bytes.begin(), bytes.end(), std::byte{0});
      });
    }
    const auto tokens = (*rig)->Drain();
    EXPECT_THAT(tokens, IsOk());
    *drafted = (*rig)->drafted();
    return tokens.ok() ? tokens->begin()->second : Tokens32();
  };
  std::int64_t all = 0;
  std::int64_t none = 0;
  const Tokens32 want = decode(false, &all);
  EXPECT_EQ(decode(true, &none), want);
  EXPECT_GT(all, 0);
  EXPECT_EQ(none, 0);
}

TEST_F(BrokenBackendTest, AnArenaThatDoesNotFitIsATypedError) {
  const auto small = MakeCpuBackend({.memory_limit = Bytes(1000)});
  EXPECT_THAT(RankEngine::Create(*small, Options()),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       absl::StrFormat("arena: memory: %d bytes asked for", plan_.arena_bytes.value())));
}

}  // namespace
}  // namespace kvasir::testing
