// A DeepSeek-V3 checkpoint with a module of multi-token prediction, as tools/reference/checkpoints.py wrote
// it: what the module drafts, against the reference's logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/models/draft_of.h"
#include "common/models/read_config.h"
#include "tests/testing/matchers.h"
#include "tests/worker/weights/golden_engine.h"

namespace kvasir::testing {
namespace {

constexpr const char* kFolder = KVASIR_TEST_DATA_DIR "/checkpoints/deepseek-v3-mtp";
constexpr std::int64_t kChunk = 16;
constexpr std::int64_t kDraftTokens = 3;
constexpr std::int64_t kChainAfter = 21;  // as in checkpoints.py
constexpr std::int64_t kVocab = 96;

class MtpGoldenTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    auto target = ReadConfigPath(kFolder);
    KVASIR_ASSERT_OK(target);
    target->dtype = GetParam();
    const auto draft = MtpDraft(*target);
    KVASIR_ASSERT_OK(draft);
    auto engine = GoldenEngine::Create({.target = {*target, kFolder},
                                        .draft = GoldenModel{*draft, kFolder},
                                        .draft_tokens = kDraftTokens,
                                        .block_tokens = 16,
                                        .prefill_chunk = kChunk,
                                        .context = 64});
    KVASIR_ASSERT_OK(engine);
    engine_ = *std::move(engine);
    golden_ = ReadGolden(std::string(kFolder) + "/reference.safetensors");
    for (const float token : golden_["tokens"]) tokens_.push_back(static_cast<std::int32_t>(token));
    ASSERT_EQ(tokens_.size(), 40U);
  }

  // The first `count` tokens in chunks.
  void Prefill(const SequenceTable& table, std::int64_t count) {
    for (std::int64_t at = 0; at < count; at += kChunk) {
      const auto first = tokens_.begin() + at;
      const auto rows = std::min(kChunk, count - at);
      KVASIR_ASSERT_OK(engine_->Step(StepKind::kPrefill, table, at, {first, first + rows}));
    }
  }
  // The next step drafts behind the token at `committed`. How many drafted tokens were accepted.
  std::int64_t Speculate(const SequenceTable& table, std::int64_t committed) {
    const auto outcome =
        engine_->Step(StepKind::kSpeculate, table, committed, {tokens_[static_cast<std::size_t>(committed)]});
    KVASIR_EXPECT_OK(outcome);
    return outcome.ok() ? outcome->sequences[0].accepted : -1;
  }
  void ExpectDrafted(std::span<const float> want, const char* what, std::int64_t at) {
    const std::vector<float>& seen = engine_->seen(Pass::kDraftBlock);
    ASSERT_GE(seen.size(), want.size());
    const double difference = GoldenDifference(std::span(seen).first(want.size()), want);
    EXPECT_LE(difference, GetParam() == DType::kF32 ? 1e-4 : 2e-2) << what << " behind " << at;
    worst_ = std::max(worst_, difference);
  }
  [[nodiscard]] std::span<const float> Row(std::int64_t row) {
    return std::span(golden_["mtp_logits"]).subspan(static_cast<std::size_t>(row * kVocab), kVocab);
  }

  std::unique_ptr<GoldenEngine> engine_;
  std::map<std::string, std::vector<float>> golden_;
  std::vector<std::int32_t> tokens_;
  double worst_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Caches, MtpGoldenTest, ::testing::Values(DType::kF32, DType::kBf16),
                         [](const auto& its) { return std::string(DTypeName(its.param)); });

// Prompts that end within a chunk, at its end and behind it.
TEST_P(MtpGoldenTest, TheFirstDraftedTokenBehindAPrompt) {
  for (const std::int64_t prompt : {1, 2, 15, 16, 17, 32, 33}) {
    auto table = engine_->tables().Reserve(64);
    KVASIR_ASSERT_OK(table);
    engine_->tables().Place(*table, 0, prompt + kDraftTokens + 1);
    ASSERT_NO_FATAL_FAILURE(Prefill(*table, prompt));
    ASSERT_GE(Speculate(*table, prompt), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDrafted(Row(prompt - 1), "the first token", prompt));
    engine_->tables().Release(*table);
  }
  RecordProperty("worst", std::to_string(worst_));
}

TEST_P(MtpGoldenTest, AChainOfDraftedTokens) {
  auto table = engine_->tables().Reserve(64);
  KVASIR_ASSERT_OK(table);
  ASSERT_NO_FATAL_FAILURE(Prefill(*table, kChainAfter));
  ASSERT_GE(Speculate(*table, kChainAfter), 0);
  ExpectDrafted(golden_["mtp_chain"], "the chain", kChainAfter);
}

// Step by step: each takes in the token and the state that the verify pass left, and forgets what was
// drafted.
TEST_P(MtpGoldenTest, BehindEveryTokenOfADecode) {
  auto table = engine_->tables().Reserve(64);
  KVASIR_ASSERT_OK(table);
  ASSERT_NO_FATAL_FAILURE(Prefill(*table, 4));
  std::int64_t compared = 0;
  for (std::int64_t committed = 4; committed < 36; ++committed, ++compared) {
    const std::int64_t accepted = Speculate(*table, committed);
    ASSERT_GE(accepted, 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDrafted(Row(committed - 1), "the first token", committed));
    if (accepted > 0) break;  // the golden goes on with another token
  }
  EXPECT_GE(compared, 12);
}

}  // namespace
}  // namespace kvasir::testing
