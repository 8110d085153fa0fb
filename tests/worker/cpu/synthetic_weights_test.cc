// The seeded weights: pure, exact in bf16, equal to slices of the full tensor, and with the two structures
// that make the synthetic pair decode sensibly.
#include "worker/engine/synthetic_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "common/geometry/bf16.h"
#include "worker/engine/weight_set.h"

namespace kvasir {
namespace {

TEST(SyntheticWeightsTest, BitsAreFixedForEver) {
  // A change here changes every model and every golden decode: it needs a reason in the changelog.
  const SyntheticTensor matrix(1, MatrixSpec("target.layers.0.q_up", 64, 48, 4));
  EXPECT_EQ(matrix.At(0, 0), 0.84375F);
  EXPECT_EQ(matrix.At(63, 47), -0.8828125F);
  const SyntheticTensor norm(1, NormSpec("target.final_norm", 8));
  EXPECT_EQ(norm.At(0, 3), 1.046875F);
}

TEST(SyntheticWeightsTest, EveryValueIsExactInBf16) {
  for (const WeightSpec& spec : {MatrixSpec("m", 40, 50), MatrixSpec("m", 10, 7168, 3, 2),
                                 NormSpec("n", 500, -2), EmbeddingSpec("e", 40, 50), HeadSpec("e", 40, 50),
                                 MarkovInSpec("w", 40, 16), MarkovOutSpec("w", 40, 16)}) {
    for (const float value : MakeWeights(3, spec, WholeTensor(spec))) {
      ASSERT_EQ(Bf16ToFloat(FloatToBf16(value)), value) << spec.source;
    }
  }
}

struct SpreadCase {
  WeightSpec spec;
  double deviation;
};
void PrintTo(const SpreadCase& c, std::ostream* out) { *out << c.spec.source << " " << c.spec.cols; }

TEST(SyntheticWeightsTest, DeviationsAreWhatTheSpecsSay) {
  for (const SpreadCase& c :
       {SpreadCase{MatrixSpec("a", 300, 64), 1.0 / 8}, SpreadCase{MatrixSpec("b", 300, 100, 4), 4.0 / 10},
        SpreadCase{MatrixSpec("c", 300, 100, 3, 2), 0.15},
        SpreadCase{MatrixSpec("d", 4, 7168), 1 / std::sqrt(7168.0)},
        SpreadCase{EmbeddingSpec("e", 300, 64), 1.0}, SpreadCase{HeadSpec("e", 300, 64), 1.0 / 8}}) {
    SCOPED_TRACE(::testing::PrintToString(c));
    const std::vector<float> values = MakeWeights(5, c.spec, WholeTensor(c.spec));
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const double count = static_cast<double>(values.size());
    EXPECT_NEAR(std::sqrt(squares / count), c.deviation, 0.03 * c.deviation);
    EXPECT_NEAR(sum / count, 0, 4 * c.deviation / std::sqrt(count));
  }
}

TEST(SyntheticWeightsTest, SeedAndNameDecideTheValues) {
  const WeightSpec a = MatrixSpec("a", 20, 20);
  const WeightSpec b = MatrixSpec("b", 20, 20);
  EXPECT_EQ(MakeWeights(1, a, WholeTensor(a)), MakeWeights(1, a, WholeTensor(a)));
  EXPECT_NE(MakeWeights(1, a, WholeTensor(a)), MakeWeights(2, a, WholeTensor(a)));
  EXPECT_NE(MakeWeights(1, a, WholeTensor(a)), MakeWeights(1, b, WholeTensor(b)));
}

TEST(SyntheticWeightsTest, AShardIsTheSliceOfTheFullTensor) {
  for (const WeightSpec& spec :
       {MatrixSpec("m", 24, 36), HeadSpec("e", 24, 36), MarkovOutSpec("w", 24, 36)}) {
    const std::vector<float> full = MakeWeights(9, spec, WholeTensor(spec));
    for (const std::int64_t shards : {1, 2, 3, 4}) {
      for (std::int64_t s = 0; s < shards; ++s) {
        const TensorPart rows = RowShard(spec, s, shards);
        const TensorPart cols = ColumnShard(spec, s, shards);
        std::vector<float> row_slice, col_slice;
        for (std::int64_t r = 0; r < spec.rows; ++r) {
          for (std::int64_t c = 0; c < spec.cols; ++c) {
            const float value = full[static_cast<std::size_t>(r * spec.cols + c)];
            if (r / (spec.rows / shards) == s) row_slice.push_back(value);
            if (c / (spec.cols / shards) == s) col_slice.push_back(value);
          }
        }
        EXPECT_EQ(MakeWeights(9, spec, rows), row_slice) << spec.source << " rows " << s << "/" << shards;
        EXPECT_EQ(MakeWeights(9, spec, cols), col_slice) << spec.source << " columns " << s << "/" << shards;
      }
    }
  }
}

TEST(SyntheticWeightsTest, BlocksOfRowsAreWhereTheirStepSays) {
  const WeightSpec spec = MatrixSpec("kv_up", 3 * 5, 4);  // 3 heads of 2 key and 3 value rows
  const std::vector<float> full = MakeWeights(9, spec, WholeTensor(spec));
  const std::vector<float> values =
      MakeWeights(9, spec, {.row_begin = 5 + 2, .rows = 3, .row_step = 5, .blocks = 2, .cols = 4});
  std::vector<float> want(full.begin() + 7 * 4, full.begin() + 10 * 4);
  want.insert(want.end(), full.begin() + 12 * 4, full.begin() + 15 * 4);
  EXPECT_EQ(values, want);
}

TEST(SyntheticWeightsTest, TheSuccessorVisitsEveryToken) {
  for (const std::int64_t vocab : {1, 2, 3, 96, 97, 512, 30030, 163840}) {
    const std::int64_t stride = SuccessorStride(vocab);
    EXPECT_GE(stride, 1);
    EXPECT_EQ(std::gcd(stride, vocab), 1) << vocab;
  }
}

TEST(SyntheticWeightsTest, HeadAndMarkovHeadVoteForTheSuccessor) {
  constexpr std::int64_t kVocab = 97, kHidden = 128, kRank = 32;
  const std::int64_t stride = SuccessorStride(kVocab);
  const SyntheticTensor embedding(2, EmbeddingSpec("e", kVocab, kHidden));
  const SyntheticTensor head(2, HeadSpec("e", kVocab, kHidden));
  const SyntheticTensor w1(2, MarkovInSpec("w", kVocab, kRank));
  const SyntheticTensor w2(2, MarkovOutSpec("w", kVocab, kRank));
  std::int64_t markov_right = 0;
  for (std::int64_t t = 0; t < kVocab; ++t) {
    std::int64_t best_head = 0, best_markov = 0;
    double top_head = -1e9, top_markov = -1e9;
    for (std::int64_t n = 0; n < kVocab; ++n) {
      double head_vote = 0, markov_vote = 0;
      for (std::int64_t j = 0; j < kHidden; ++j) {
        head_vote += static_cast<double>(embedding.At(t, j)) * static_cast<double>(head.At(n, j));
      }
      for (std::int64_t j = 0; j < kRank; ++j) {
        markov_vote += static_cast<double>(w1.At(t, j)) * static_cast<double>(w2.At(j, n));
      }
      if (head_vote > top_head) top_head = head_vote, best_head = n;
      if (markov_vote > top_markov) top_markov = markov_vote, best_markov = n;
    }
    EXPECT_EQ(best_head, (t + stride) % kVocab);
    markov_right += best_markov == (t + stride) % kVocab ? 1 : 0;
    EXPECT_LE(top_markov, 8.0);
  }
  EXPECT_GE(markov_right, kVocab - 1);
}

}  // namespace
}  // namespace kvasir
