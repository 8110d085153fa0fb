// The pair of tests/data/pair, from its files to its logits: configurations are read, a plan is made, tensors
// are checked and read, and the engine decodes through its paged caches. What it computes is held against the
// plain torch code of tools/pair/golden.py: the target's logits at every position, in one prefill and token
// by token, and the drafted blocks of several anchors.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/models/read_config.h"
#include "tests/testing/matchers.h"
#include "tests/worker/weights/golden_engine.h"

namespace kvasir::testing {
namespace {

struct PairCase {
  std::string folder;
  StateRollback rollback = StateRollback::kSnapshots;
};
void PrintTo(const PairCase& c, std::ostream* out) {
  *out << c.folder << " " << StateRollbackName(c.rollback);
}

class PairGoldenTest : public ::testing::TestWithParam<PairCase> {
 protected:
  static constexpr std::int64_t kDraftTokens = 5;

  void SetUp() override {
    const std::string folder = std::string(KVASIR_TEST_DATA_DIR) + "/" + GetParam().folder;
    golden_ = ReadGolden(folder + "/golden.safetensors");
    ASSERT_TRUE(golden_.contains("logits"));
    for (const float token : golden_["tokens"]) tokens_.push_back(static_cast<std::int32_t>(token));
    auto target = ReadConfigPath(folder + "/target/config.json");
    auto draft = ReadConfigPath(folder + "/draft/config.json");
    KVASIR_ASSERT_OK(target);
    KVASIR_ASSERT_OK(draft);
    target->dtype = draft->dtype = DType::kF32;  // of caches, as the golden's; the stored weights keep theirs
    auto engine = GoldenEngine::Create({.target = {*target, folder + "/target"},
                                        .draft = GoldenModel{*draft, folder + "/draft"},
                                        .draft_tokens = kDraftTokens,
                                        .rollback = std::string(StateRollbackName(GetParam().rollback))});
    KVASIR_ASSERT_OK(engine);
    engine_ = *std::move(engine);
  }

  [[nodiscard]] std::size_t vocab() { return golden_["logits"].size() / tokens_.size(); }
  [[nodiscard]] std::span<const float> LogitsAt(std::int64_t position) {
    return std::span(golden_["logits"]).subspan(static_cast<std::size_t>(position) * vocab(), vocab());
  }
  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }

  std::map<std::string, std::vector<float>> golden_;
  std::vector<std::int32_t> tokens_;
  std::unique_ptr<GoldenEngine> engine_;
};

INSTANTIATE_TEST_SUITE_P(, PairGoldenTest,
                         ::testing::Values(PairCase{"pair/tiny"},
                                           PairCase{"pair/tiny", StateRollback::kReplay}, PairCase{"pair"},
                                           PairCase{"pair", StateRollback::kReplay}));

TEST_P(PairGoldenTest, OnePrefillGivesTheLogitsOfEveryPosition) {
  const auto logits = engine_->LogitsOf(tokens_, length());
  KVASIR_ASSERT_OK(logits);
  EXPECT_LE(GoldenDifference(*logits, golden_["logits"]), 1e-4);
}

TEST_P(PairGoldenTest, DecodingTokenByTokenGivesThemToo) {
  const auto logits = engine_->LogitsOf(tokens_, 1);
  KVASIR_ASSERT_OK(logits);
  for (std::int64_t at = 0; at < length(); ++at) {
    const auto row = std::span(*logits).subspan(static_cast<std::size_t>(at) * vocab(), vocab());
    ASSERT_LE(GoldenDifference(row, LogitsAt(at)), 1e-4) << at;
  }
}

// The context of each anchor is prefilled, so that the draft has seen the target's states of all tokens
// before it.
TEST_P(PairGoldenTest, DraftedBlocksAreTheReferences) {
  const std::vector<float>& positions = golden_["block.positions"];
  const std::size_t block = static_cast<std::size_t>(kDraftTokens) * vocab();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<std::int64_t>(positions[i]);
    auto table = engine_->tables().Reserve(at + 16);
    KVASIR_ASSERT_OK(table);
    engine_->tables().Place(*table, 0, at);
    KVASIR_ASSERT_OK(engine_->Step(StepKind::kPrefill, *table, 0,
                                   std::vector<std::int32_t>(tokens_.begin(), tokens_.begin() + at)));
    engine_->tables().Place(*table, at, kDraftTokens + 1);
    const auto outcome =
        engine_->Step(StepKind::kSpeculate, *table, at, {tokens_[static_cast<std::size_t>(at)]});
    KVASIR_ASSERT_OK(outcome);
    EXPECT_EQ(outcome->sequences[0].drafted, kDraftTokens);
    const std::vector<float>& drafted = engine_->seen(Pass::kDraftBlock);
    ASSERT_GE(drafted.size(), block);
    EXPECT_LE(GoldenDifference(std::span(drafted).first(block),
                               std::span(golden_["block.logits"]).subspan(i * block, block)),
              1e-4)
        << "anchor at " << at;
    const std::vector<float>& confidences = engine_->confidences();
    ASSERT_GE(confidences.size(), static_cast<std::size_t>(kDraftTokens));
    EXPECT_LE(
        GoldenDifference(std::span(confidences).first(kDraftTokens),
                         std::span(golden_["block.confidence"]).subspan(i * kDraftTokens, kDraftTokens)),
        1e-4)
        << "anchor at " << at;
    // The first row verified is the anchor's.
    EXPECT_LE(GoldenDifference(std::span(engine_->seen(Pass::kTargetVerify)).first(vocab()), LogitsAt(at)),
              1e-4)
        << at;
    engine_->tables().Release(*table);
  }
}

}  // namespace
}  // namespace kvasir::testing
