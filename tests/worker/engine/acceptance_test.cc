// A scripted proposer drives every accepted length 0..N through the real verify, context and rollback passes:
// the output stays that of plain decoding, and after every accept/reject pattern the paged draft's logits are
// those of a draft computed from scratch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_format.h"
#include "tests/testing/cacheless_model.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kOutput = 40;

struct Case {
  Topology topology;
  std::int64_t draft_tokens = 3;
  std::optional<StateRollback> rollback = std::nullopt;  // of a hybrid target; nullopt: MLA alone
};

std::string NameOfCase(const Case& c) {
  return absl::StrFormat(
      "tp%d_dcp%d_n%d%s", c.topology.tp, c.topology.dcp, c.draft_tokens,
      c.rollback.has_value() ? absl::StrFormat("_%s", StateRollbackName(*c.rollback)) : "");
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

class AcceptanceTest : public ::testing::TestWithParam<Case> {
 protected:
  Plan PlanOf(std::int64_t draft_tokens, DType dtype) const {
    return MakeEnginePlan({.topology = GetParam().topology,
                           .draft_tokens = draft_tokens,
                           .parents = 100,
                           .dtype = dtype,
                           .hybrid = GetParam().rollback.has_value(),
                           .rollback = GetParam().rollback.value_or(StateRollback::kSnapshots)});
  }

  // Prompts and what plain decoding makes of them: whole_[i] is prompt and output of sequence i.
  void DecodePlainly(DType dtype) {
    const std::vector<Tokens32> prompts = {MakePrompt(3, 1), MakePrompt(8, 2), MakePrompt(13, 3)};
    auto rig = EngineRig::Create({.plan = PlanOf(0, dtype)});
    KVASIR_ASSERT_OK(rig);
    const auto plain = DecodeAll(**rig, prompts, kOutput, false);
    KVASIR_ASSERT_OK(plain);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      prompts_.push_back(static_cast<std::int64_t>(prompts[i].size()));
      whole_.push_back(prompts[i]);
      whole_.back().insert(whole_.back().end(), (*plain)[i].begin(), (*plain)[i].end());
    }
  }

  // How many drafts of a sequence the script lets through, if as many are valid: triangular numbers, so that
  // each length is followed by different ones.
  [[nodiscard]] std::int64_t Scripted(const StepPlan& step, const StepSequence& part) const {
    return (step.step * (step.step + 1) / 2 + 2 * part.id.value()) % (GetParam().draft_tokens + 1);
  }

  // True continuations up to the scripted length, then a wrong token, then true ones again, which must not
  // count.
  void Propose(const StepPlan& step, std::span<std::int32_t> drafted) const {
    const std::int64_t n = GetParam().draft_tokens;
    for (std::size_t i = 0; i < step.sequences.size(); ++i) {
      const StepSequence& part = step.sequences[i];
      const Tokens32& whole = whole_[static_cast<std::size_t>(part.id.value())];
      for (std::int64_t k = 0; k < n; ++k) {
        const auto position = static_cast<std::size_t>(part.committed + 1 + k);
        const std::int32_t truth = position < whole.size() ? whole[position] : 0;
        const bool wrong = k == Scripted(step, part);
        drafted[i * static_cast<std::size_t>(n) + static_cast<std::size_t>(k)] =
            static_cast<std::int32_t>(wrong ? (truth + 1) % kSmallVocab : truth);
      }
    }
  }

  // Runs the script; `look` is called after each speculative step with the sequence's part of it and the
  // drafted block's logits [valid rows, vocab].
  void Run(DType dtype, const std::function<void(const StepSequence&, std::span<const float>)>& look) {
    const std::int64_t n = GetParam().draft_tokens;
    std::vector<float> logits;
    EngineRigOptions options{.plan = PlanOf(n, dtype)};
    options.draft_override = [this](const StepPlan& step, std::span<std::int32_t> drafted) {
      Propose(step, drafted);
    };
    options.observe_pass = [&](std::int64_t rank, const PassMetadata& metadata,
                               std::span<const float> values) {
      if (rank == 0 && metadata.shape.pass == Pass::kDraftBlock) logits.assign(values.begin(), values.end());
    };
    auto rig = EngineRig::Create(options);
    KVASIR_ASSERT_OK(rig);
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      const Tokens32 prompt(whole_[i].begin(), whole_[i].begin() + prompts_[i]);
      const auto id = (*rig)->scheduler().Join({.prompt = prompt, .max_tokens = kOutput});
      KVASIR_ASSERT_OK(id);
      ASSERT_EQ(id->value(), static_cast<std::int64_t>(i));
    }
    for (;;) {
      const auto progress = (*rig)->Step();
      KVASIR_ASSERT_OK(progress);
      if (!progress->has_value()) break;
      const StepPlan& step = (*rig)->last_step();
      if (step.kind != StepKind::kSpeculate) continue;
      for (std::size_t i = 0; i < step.sequences.size(); ++i) {
        const StepSequence& part = step.sequences[i];
        const std::int64_t valid = std::min(n, part.limit - 1 - part.committed);
        EXPECT_EQ((**progress)[i].drafted, valid);
        EXPECT_EQ((**progress)[i].accepted, std::min(valid, Scripted(step, part)));
        seen_.insert((**progress)[i].accepted);
        look(part, std::span(logits).subspan(i * static_cast<std::size_t>(n * kSmallVocab),
                                             static_cast<std::size_t>(valid * kSmallVocab)));
      }
    }
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      EXPECT_EQ((*rig)->tokens().at(SequenceId(static_cast<std::int64_t>(i))),
                Tokens32(whole_[i].begin() + prompts_[i], whole_[i].end()));
    }
  }

  [[nodiscard]] Tokens32 CommittedTokens(const StepSequence& part) const {
    const Tokens32& whole = whole_[static_cast<std::size_t>(part.id.value())];
    return Tokens32(whole.begin(), whole.begin() + part.committed);
  }

  std::vector<std::int64_t> prompts_;
  std::vector<Tokens32> whole_;
  std::set<std::int64_t> seen_;
};

TEST_P(AcceptanceTest, EveryAcceptedLengthIsLossless) {
  ASSERT_NO_FATAL_FAILURE(DecodePlainly(DType::kBf16));
  ASSERT_NO_FATAL_FAILURE(Run(DType::kBf16, [](const StepSequence&, std::span<const float>) {}));
  EXPECT_EQ(static_cast<std::int64_t>(seen_.size()), GetParam().draft_tokens + 1);
}

TEST_P(AcceptanceTest, DraftLogitsAreThoseOfACachelessDraft) {
  const auto model = CachelessModel::Create({.target = TargetOf(PlanOf(GetParam().draft_tokens, DType::kF32)),
                                             .draft = DraftOf(PlanOf(GetParam().draft_tokens, DType::kF32)),
                                             .seed = 1,
                                             .cache_dtype = DType::kF32});
  KVASIR_ASSERT_OK(model);
  ASSERT_NO_FATAL_FAILURE(DecodePlainly(DType::kF32));
  double worst = 0;
  std::int64_t compared = 0;
  ASSERT_NO_FATAL_FAILURE(Run(DType::kF32, [&](const StepSequence& part, std::span<const float> got) {
    const CachelessTarget target = (*model)->Target(CommittedTokens(part));
    const auto rows = static_cast<std::int64_t>(got.size()) / kSmallVocab;
    const CachelessDraft want = (*model)->Draft(target.taps, part.tokens[0], rows);
    ASSERT_EQ(want.logits.size(), got.size());
    double largest = 0;
    for (const double value : want.logits) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want.logits[i]) / largest);
      ++compared;
    }
  }));
  EXPECT_LE(worst, 1e-5);
  EXPECT_GT(compared, 1000);
}

// History leaves no trace: the same block after one prefill of all committed tokens, on as many ranks.
TEST_P(AcceptanceTest, DraftLogitsAreBitwiseThoseOfAFreshRun) {
  ASSERT_NO_FATAL_FAILURE(DecodePlainly(DType::kBf16));
  std::int64_t compared = 0;
  ASSERT_NO_FATAL_FAILURE(Run(DType::kBf16, [&](const StepSequence& part, std::span<const float> got) {
    std::vector<float> want;
    EngineRigOptions options{.plan = PlanOf(GetParam().draft_tokens, DType::kBf16)};
    options.observe_pass = [&](std::int64_t rank, const PassMetadata& metadata,
                               std::span<const float> values) {
      if (rank == 0 && metadata.shape.pass == Pass::kDraftBlock) want.assign(values.begin(), values.end());
    };
    auto rig = EngineRig::Create(options);
    KVASIR_ASSERT_OK(rig);
    const auto id = (*rig)->scheduler().Join(
        {.prompt = CommittedTokens(part), .max_tokens = part.limit - part.committed});
    KVASIR_ASSERT_OK(id);
    while (want.empty()) KVASIR_ASSERT_OK((*rig)->Step());
    ASSERT_EQ((*rig)->last_step().sequences[0].tokens, part.tokens);  // the same anchor
    ASSERT_GE(want.size(), got.size());
    EXPECT_EQ(std::memcmp(want.data(), got.data(), got.size_bytes()), 0) << "at T = " << part.committed;
    compared += static_cast<std::int64_t>(got.size());
  }));
  EXPECT_GT(compared, 1000);
}

INSTANTIATE_TEST_SUITE_P(, AcceptanceTest,
                         ::testing::Values(Case{{.tp = 1}, 1}, Case{{.tp = 1}, 3}, Case{{.tp = 1}, 7},
                                           Case{{.tp = 2, .dcp = 1}, 3}, Case{{.tp = 2, .dcp = 2}, 3},
                                           Case{{.tp = 4, .dcp = 2}, 5}, Case{{.tp = 4, .dcp = 4}, 3},
                                           Case{{.tp = 1}, 1, StateRollback::kSnapshots},
                                           Case{{.tp = 1}, 3, StateRollback::kReplay},
                                           Case{{.tp = 1}, 7, StateRollback::kSnapshots},
                                           Case{{.tp = 1}, 7, StateRollback::kReplay},
                                           Case{{.tp = 2, .dcp = 2}, 3, StateRollback::kSnapshots},
                                           Case{{.tp = 2, .dcp = 1}, 4, StateRollback::kReplay},
                                           Case{{.tp = 4, .dcp = 2}, 5, StateRollback::kReplay}),
                         [](const auto& its) { return NameOfCase(its.param); });

class OneRankAcceptanceTest : public AcceptanceTest {};

// The same against the passes run by hand, without engine, scheduler, metadata builder or shared pages.
TEST_P(OneRankAcceptanceTest, DraftLogitsAreBitwiseThoseFromScratch) {
  const ModelRanksOptions scratch{.target = SmallTarget(), .draft = SmallDraft(), .topology = {}};
  ASSERT_NO_FATAL_FAILURE(DecodePlainly(DType::kBf16));
  std::int64_t compared = 0;
  ASSERT_NO_FATAL_FAILURE(Run(DType::kBf16, [&](const StepSequence& part, std::span<const float> got) {
    const auto rows = static_cast<std::int64_t>(got.size()) / kSmallVocab;
    const auto want = FromScratchDraft(scratch, CommittedTokens(part), part.tokens[0], rows);
    KVASIR_ASSERT_OK(want);
    ASSERT_GE(want->logits.size(), got.size());
    EXPECT_EQ(std::memcmp(want->logits.data(), got.data(), got.size_bytes()), 0)
        << "at T = " << part.committed;
    compared += rows;
  }));
  EXPECT_GT(compared, 30);
}

INSTANTIATE_TEST_SUITE_P(, OneRankAcceptanceTest,
                         ::testing::Values(Case{{.tp = 1}, 1}, Case{{.tp = 1}, 3}, Case{{.tp = 1}, 7}),
                         [](const auto& its) { return NameOfCase(its.param); });

}  // namespace
}  // namespace kvasir::testing
