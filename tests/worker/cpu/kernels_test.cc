// Each row-wise operation against its formula in double, on shapes that no lane count divides, and its rows'
// bits against the same rows alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "common/geometry/bf16.h"
#include "tests/testing/matchers.h"
#include "worker/cpu/cpu_kernels.h"
#include "worker/engine/token_distribution.h"

namespace kvasir::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Random(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double D(float x) { return static_cast<double>(x); }

struct LinearCase {
  std::int64_t rows, in_dim, out_dim;
};
void PrintTo(const LinearCase& c, std::ostream* out) {
  *out << c.rows << " x " << c.in_dim << " x " << c.out_dim;
}
class LinearTest : public ::testing::TestWithParam<LinearCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, LinearTest,
                         ::testing::Values(LinearCase{1, 1, 1}, LinearCase{3, 15, 17}, LinearCase{2, 16, 16},
                                           LinearCase{5, 33, 40}, LinearCase{17, 128, 3}));

TEST_P(LinearTest, MatchesDoubleWithStridesAndForAnyNumberOfRows) {
  const LinearCase c = GetParam();
  const std::int64_t in_stride = c.in_dim + 3;
  const std::int64_t out_stride = c.out_dim + 2;
  const std::vector<float> in = Random(static_cast<std::size_t>(c.rows * in_stride), 1);
  const std::vector<float> weight = Random(static_cast<std::size_t>(c.out_dim * c.in_dim), 2);
  std::vector<float> out(static_cast<std::size_t>(c.rows * out_stride), -7.0F);
  LinearOp op{in.data(), weight.data(), out.data(), c.rows, c.in_dim, c.out_dim, in_stride, out_stride};
  Linear(op);
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t n = 0; n < c.out_dim; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < c.in_dim; ++k) {
        sum += D(in[static_cast<std::size_t>(r * in_stride + k)]) *
               D(weight[static_cast<std::size_t>(n * c.in_dim + k)]);
      }
      EXPECT_NEAR(D(out[static_cast<std::size_t>(r * out_stride + n)]), sum, 1e-4);
    }
    EXPECT_EQ(out[static_cast<std::size_t>(r * out_stride + c.out_dim)], -7.0F) << "wrote between rows";
    std::vector<float> alone(static_cast<std::size_t>(c.out_dim));
    Linear({in.data() + r * in_stride, weight.data(), alone.data(), 1, c.in_dim, c.out_dim, in_stride,
            out_stride});
    EXPECT_EQ(std::memcmp(alone.data(), out.data() + r * out_stride, alone.size() * sizeof(float)), 0);
  }
}

TEST(KernelsTest, AbsorbAndProjectMatchDouble) {
  constexpr std::int64_t kRows = 3, kHeads = 2, kNope = 5, kRope = 4, kLatent = 19, kValue = 7;
  const std::vector<float> q = Random(kRows * kHeads * (kNope + kRope), 1);
  const std::vector<float> w_uk = Random(kHeads * kNope * kLatent, 2);
  const std::vector<float> w_uv = Random(kHeads * kValue * kLatent, 3);
  std::vector<float> absorbed(kRows * kHeads * (kLatent + kRope));
  AbsorbQuery({q.data(), w_uk.data(), absorbed.data(), kRows, kHeads, kNope, kRope, kLatent});
  std::vector<float> values(kRows * kHeads * kValue);
  const std::vector<float> latent = Random(kRows * kHeads * kLatent, 4);
  ProjectValue({latent.data(), w_uv.data(), values.data(), kRows, kHeads, kLatent, kValue});
  for (std::size_t rh = 0; rh < kRows * kHeads; ++rh) {
    const std::size_t h = rh % kHeads;
    for (std::size_t l = 0; l < kLatent; ++l) {
      double sum = 0;
      for (std::size_t i = 0; i < kNope; ++i) {
        sum += D(q[rh * (kNope + kRope) + i]) * D(w_uk[(h * kNope + i) * kLatent + l]);
      }
      EXPECT_NEAR(D(absorbed[rh * (kLatent + kRope) + l]), sum, 1e-5);
    }
    for (std::size_t i = 0; i < kRope; ++i) {
      EXPECT_EQ(absorbed[rh * (kLatent + kRope) + kLatent + i], q[rh * (kNope + kRope) + kNope + i]);
    }
    for (std::size_t v = 0; v < kValue; ++v) {
      double sum = 0;
      for (std::size_t l = 0; l < kLatent; ++l) {
        sum += D(latent[rh * kLatent + l]) * D(w_uv[(h * kValue + v) * kLatent + l]);
      }
      EXPECT_NEAR(D(values[rh * kValue + v]), sum, 1e-5);
    }
  }
}

TEST(KernelsTest, RmsNormInPlaceWithStrides) {
  constexpr std::int64_t kRows = 4, kCols = 21, kStride = 25;
  const std::vector<float> in = Random(kRows * kStride, 5);
  const std::vector<float> weight = Random(kCols, 6);
  std::vector<float> x = in;
  RmsNorm({x.data(), weight.data(), x.data(), kRows, kCols, kStride, kStride, 1e-6F});
  for (std::size_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < kCols; ++i) squares += D(in[r * kStride + i]) * D(in[r * kStride + i]);
    for (std::size_t i = 0; i < kStride; ++i) {
      const double want = i < kCols
                              ? D(in[r * kStride + i]) / std::sqrt(squares / kCols + 1e-6) * D(weight[i])
                              : D(in[r * kStride + i]);
      EXPECT_NEAR(D(x[r * kStride + i]), want, 1e-5);
    }
  }
}

TEST(KernelsTest, RmsNormOfZerosIsZero) {
  std::vector<float> x(8, 0.0F);
  const std::vector<float> weight(8, 1.0F);
  RmsNorm({x.data(), weight.data(), x.data(), 1, 8, 8, 8, 1e-6F});
  for (const float value : x) EXPECT_EQ(value, 0.0F);
}

TEST(KernelsTest, RopeTurnsPairsByPositionTimesFrequency) {
  constexpr std::int64_t kHeads = 2, kDim = 4, kHeadStride = 6;
  const std::vector<std::int64_t> positions = {0, 3, 1000003};
  const std::vector<float> frequencies = {0.75F, 0.0625F};
  const std::vector<float> in = Random(3 * kHeads * kHeadStride, 7);
  std::vector<float> x = in;
  Rope({x.data(), positions.data(), frequencies.data(), 3, kHeads, kDim, kHeads * kHeadStride, kHeadStride,
        1.5F});
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t at = r * kHeads * kHeadStride + h * kHeadStride + 2 * i;
        const double angle = static_cast<double>(positions[r]) * D(frequencies[i]);
        EXPECT_NEAR(D(x[at]), 1.5 * (D(in[at]) * std::cos(angle) - D(in[at + 1]) * std::sin(angle)), 1e-5);
        EXPECT_NEAR(D(x[at + 1]), 1.5 * (D(in[at]) * std::sin(angle) + D(in[at + 1]) * std::cos(angle)),
                    1e-5);
      }
      const std::size_t rest = r * kHeads * kHeadStride + h * kHeadStride + kDim;
      EXPECT_EQ(x[rest], in[rest]) << "lanes beyond `dim` are not rotary";
    }
  }
}

TEST(KernelsTest, GatesAndSums) {
  std::vector<float> gate = {-100.0F, -1.0F, 0.0F, 1.0F, 100.0F};
  const std::vector<float> up = {2.0F, 2.0F, 2.0F, 2.0F, 2.0F};
  std::vector<float> out(5);
  SwiGlu({gate.data(), up.data(), out.data(), 1, 5});
  std::vector<float> x = up;
  SigmoidGate({x.data(), gate.data(), 5});
  for (std::size_t i = 0; i < 5; ++i) {
    const double sigmoid = 1 / (1 + std::exp(-D(gate[i])));
    EXPECT_NEAR(D(out[i]), D(gate[i]) * sigmoid * 2, 1e-5);
    EXPECT_NEAR(D(x[i]), 2 * sigmoid, 1e-6);
  }
  Add({x.data(), up.data(), 5});
  EXPECT_EQ(x[2], 3.0F);
  std::vector<float> rows(6, -1.0F);
  CopyRows({up.data(), rows.data(), 2, 2, 1, 3});
  EXPECT_EQ(rows, (std::vector<float>{2, 2, -1, 2, 2, -1}));
}

TEST(KernelsTest, CacheWriteRoundsAndSkipsSlotMinusOne) {
  const PageGeometry page{.stride_bytes = 64, .layer_offset_bytes = 16, .block_tokens = 2, .row_bytes = 6};
  const std::vector<float> in = {1.0F, 1.00390625F, kNan, 5, 6, 7, 8, 9, 10};
  const std::vector<std::int64_t> slots = {3, -1, 4};  // block 1 row 1; nothing; block 2 row 0
  std::vector<std::byte> arena(192, std::byte{0xee});
  CacheWrite({in.data(), slots.data(), arena.data(), page, DType::kBf16, 3, 3, 3});
  const auto element = [&](std::int64_t at) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, arena.data() + at, 2);
    return Bf16ToFloat(bits);
  };
  EXPECT_EQ(element(64 + 16 + 6), 1.0F);
  EXPECT_EQ(element(64 + 16 + 8), 1.0F) << "halfway rounds to even";
  EXPECT_TRUE(std::isnan(element(64 + 16 + 10)));
  EXPECT_EQ(element(128 + 16), 8.0F);
  std::int64_t touched = 0;
  for (const std::byte byte : arena) touched += byte == std::byte{0xee} ? 0 : 1;
  EXPECT_EQ(touched, 12);
}

TEST(KernelsTest, ArgmaxTakesTheLowestOfEqualsAndReportsNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1, 3, 3, -1, -inf, -2, -inf, -2, 0, kNan, 5, 1, kNan, 0, 0, 0};
  std::vector<std::int32_t> ids(4, -1);
  std::int32_t fault = 0;
  Argmax({logits.data(), ids.data(), &fault, 2, 4});
  EXPECT_EQ(fault, 0);
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(ids[1], 1);
  Argmax({logits.data(), ids.data(), &fault, 4, 4});
  EXPECT_EQ(fault, 1);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{1, 1, 0, 0}));
}

TEST(KernelsTest, ArgmaxReportsALargestLogitThatIsInfinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits : {std::vector<float>{-inf, -inf}, {1, inf}, {inf, -inf}}) {
    std::int32_t id = -1;
    std::int32_t fault = 0;
    Argmax({logits.data(), &id, &fault, 1, 2});
    EXPECT_EQ(fault, 1);
    EXPECT_EQ(id, 0);
  }
}

TEST(KernelsTest, MarkovChainFollowsItsOwnChoices) {
  constexpr std::int64_t kVocab = 5, kRank = 3, kRows = 4;
  const std::vector<float> base = Random(2 * kRows * kVocab, 8);
  const std::vector<float> w1 = Random(kVocab * kRank, 9);
  const std::vector<float> w2 = Random(kRank * kVocab, 10);
  const std::vector<std::int32_t> anchors = {4, 1};
  std::vector<float> logits(2 * kRows * kVocab);
  std::vector<std::int32_t> drafted(2 * kRows);
  std::int32_t fault = 0;
  KVASIR_ASSERT_OK(MarkovChain({base.data(), w1.data(), w2.data(), anchors.data(), logits.data(),
                                drafted.data(), &fault, 2, kRows, kVocab, kRank}));
  EXPECT_EQ(fault, 0);
  for (std::size_t b = 0; b < 2; ++b) {
    std::size_t token = static_cast<std::size_t>(anchors[b]);
    for (std::size_t k = 0; k < kRows; ++k) {
      const std::size_t row = b * kRows + k;
      std::size_t best = 0;
      for (std::size_t n = 0; n < kVocab; ++n) {
        double sum = D(base[row * kVocab + n]);
        for (std::size_t j = 0; j < kRank; ++j) sum += D(w1[token * kRank + j]) * D(w2[j * kVocab + n]);
        EXPECT_NEAR(D(logits[row * kVocab + n]), sum, 1e-5);
        if (logits[row * kVocab + n] > logits[row * kVocab + best]) best = n;
      }
      EXPECT_EQ(drafted[row], static_cast<std::int32_t>(best));
      token = best;
    }
  }
}

// A request with a temperature drafts what its draws pick from the softmax of the very logits it leaves
// behind; its greedy neighbour and one of rank 0 (no head) are as ever.
TEST(KernelsTest, MarkovChainDrawsFromWhatItLeavesBehind) {
  constexpr std::int64_t kVocab = 5, kRank = 3, kRows = 4;
  const std::vector<float> base = Random(2 * kRows * kVocab, 8);
  const std::vector<float> w1 = Random(kVocab * kRank, 9);
  const std::vector<float> w2 = Random(kRank * kVocab, 10);
  const std::vector<std::int32_t> anchors = {4, 1};
  const std::vector<double> temperatures = {0, 2.5};
  std::vector<std::int32_t> greedy(2 * kRows);
  for (const std::int64_t rank : {kRank, std::int64_t{0}}) {
    std::vector<float> logits = base;
    std::vector<std::int32_t> drafted(2 * kRows);
    std::int32_t fault = 0;
    MarkovChainOp op{base.data(), w1.data(), w2.data(), anchors.data(), logits.data(), drafted.data(),
                     &fault,      2,         kRows,     kVocab,         rank};
    if (rank == 0) op.base = logits.data();
    KVASIR_ASSERT_OK(MarkovChain(op));
    greedy = drafted;
    std::set<std::int32_t> seen;
    std::vector<double> draws(2 * kRows);
    for (int trial = 0; trial < 40; ++trial) {
      for (std::size_t i = 0; i < draws.size(); ++i) draws[i] = (trial * 8 + static_cast<double>(i)) / 320;
      op.temperatures = temperatures.data();
      op.draws = draws.data();
      KVASIR_ASSERT_OK(MarkovChain(op));
      EXPECT_TRUE(std::equal(drafted.begin(), drafted.begin() + kRows, greedy.begin()));
      for (std::size_t row = kRows; row < 2 * kRows; ++row) {
        const auto distribution =
            MakeDistribution(std::span(logits).subspan(row * kVocab, kVocab), {.temperature = 2.5});
        EXPECT_EQ(drafted[row], SampleToken(*distribution, draws[row]));
        seen.insert(drafted[row]);
      }
    }
    EXPECT_EQ(fault, 0);
    EXPECT_GE(seen.size(), 4U);
    logits[kRows * kVocab] = std::numeric_limits<float>::infinity();
    op.rank = 0;
    op.base = logits.data();
    KVASIR_ASSERT_OK(MarkovChain(op));
    EXPECT_EQ(fault, 1);
  }
}

}  // namespace
}  // namespace kvasir::cpu
