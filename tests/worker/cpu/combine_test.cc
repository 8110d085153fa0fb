// Edge cases of the combine, for both versions, and the collectives around it.
#include "worker/cpu/combine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/thread_ranks.h"
#include "worker/cpu/collectives.h"
#include "worker/cpu/reference_combine.h"

namespace kvasir::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct CombineCase {
  const char* name;
  std::vector<float> lse;      // [ranks]
  std::vector<float> partial;  // [ranks], dim 1
  float out;
  float out_lse;
  bool fault;
};
void PrintTo(const CombineCase& c, std::ostream* out) { *out << c.name; }

const float kLn2 = std::log(2.0F);

const CombineCase kCases[] = {
    {"one rank", {3.0F}, {7.0F}, 7.0F, 3.0F, false},
    {"equal weights", {1.0F, 1.0F}, {2.0F, 4.0F}, 3.0F, 1.0F + kLn2, false},
    {"natural logarithm", {std::log(3.0F), 0.0F}, {1.0F, 5.0F}, 2.0F, std::log(4.0F), false},
    {"an empty rank weighs nothing", {-kInf, 2.0F}, {9.0F, 4.0F}, 4.0F, 2.0F, false},
    {"an empty rank's NaN is never multiplied", {-kInf, 2.0F}, {kNan, 4.0F}, 4.0F, 2.0F, false},
    {"all empty", {-kInf, -kInf}, {kNan, 3.0F}, 0.0F, -kInf, false},
    {"huge values do not overflow", {1e4F, 1e4F}, {2.0F, 4.0F}, 3.0F, 1e4F + kLn2, false},
    {"NaN lse", {kNan, 2.0F}, {1.0F, 4.0F}, kNan, kNan, true},
    {"+inf lse", {kInf, 2.0F}, {1.0F, 4.0F}, kNan, kNan, true},
    {"NaN with weight", {1.0F, 2.0F}, {kNan, 4.0F}, kNan, kNan, true},
    {"inf with weight", {1.0F, 2.0F}, {kInf, 4.0F}, kNan, kNan, true},
};

using CombineFunction = void (*)(const CombineOp&, const GatheredPartials&);

class CombineTest : public ::testing::TestWithParam<std::tuple<CombineCase, CombineFunction>> {};
INSTANTIATE_TEST_SUITE_P(Cases, CombineTest,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(&ReferenceCombine, &Combine)));

TEST_P(CombineTest, Holds) {
  const auto& [c, combine] = GetParam();
  const std::int64_t ranks = static_cast<std::int64_t>(c.lse.size());
  // One row, one head per rank; rank 0 keeps head 0. The other ranks' heads are NaN and must not be read.
  std::vector<float> lse, partial;
  for (std::size_t r = 0; r < c.lse.size(); ++r) {
    for (std::int64_t h = 0; h < ranks; ++h) {
      lse.push_back(h == 0 ? c.lse[r] : kNan);
      partial.push_back(h == 0 ? c.partial[r] : kNan);
    }
  }
  float out = -1;
  float out_lse = -1;
  std::int32_t fault = 0;
  CombineOp op{};
  op.out = &out;
  op.out_lse = &out_lse;
  op.fault = &fault;
  op.rows = 1;
  op.heads_local = 1;
  op.dim = 1;
  combine(op, {partial.data(), lse.data(), ranks, 0});
  EXPECT_EQ(fault != 0, c.fault);
  if (c.fault) return;
  EXPECT_NEAR(out, c.out, 1e-6);
  if (std::isinf(c.out_lse)) {
    EXPECT_EQ(out_lse, c.out_lse);
  } else {
    EXPECT_NEAR(out_lse, c.out_lse, 1e-6 * std::max(1.0F, std::abs(c.out_lse)));
  }
}

TEST(CombineOneRankTest, KeepsThePartialsBits) {
  const std::vector<float> partial = {-0.0F, 0.1F, -3e-39F, 7.0F};
  const std::vector<float> lse = {0.3F};
  std::vector<float> out(4);
  std::int32_t fault = 0;
  Collectives collectives(nullptr, nullptr, CpuKernels::kFast);
  KVASIR_ASSERT_OK(collectives.Combine(
      {CommGroup::kContext, partial.data(), lse.data(), out.data(), nullptr, &fault, 1, 1, 4}));
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(partial[i])) << i;
  }
}

TEST(CollectivesTest, GatherAndReduceInRankOrder) {
  constexpr std::int64_t kRanks = 3;
  testing::ThreadGroup tensor(kRanks);
  testing::ThreadGroup context(kRanks);
  KVASIR_EXPECT_OK(testing::RunRanks(kRanks, [&](std::int64_t rank) -> absl::Status {
    Collectives collectives(tensor.rank(rank), context.rank(rank), CpuKernels::kFast);
    const float r = static_cast<float>(rank);
    // [2 rows, 1 head, 2] of every rank to [2, 3, 2].
    const std::vector<float> mine = {r, r + 10, r + 100, r + 110};
    std::vector<float> heads(12);
    EXPECT_TRUE(collectives.GatherHeads({CommGroup::kContext, mine.data(), heads.data(), 2, 1, 2}).ok());
    EXPECT_EQ(heads, (std::vector<float>{0, 10, 1, 11, 2, 12, 100, 110, 101, 111, 102, 112}));
    std::vector<float> columns(12);
    EXPECT_TRUE(collectives.GatherColumns({CommGroup::kTensor, mine.data(), columns.data(), 2, 2}).ok());
    EXPECT_EQ(columns, heads);
    // (1e8 + 1) - 1e8 is 0 in rank order; any other order gives 1.
    std::vector<float> x = {rank == 0 ? 1e8F : (rank == 1 ? 1.0F : -1e8F), r};
    EXPECT_TRUE(collectives.AllReduce({CommGroup::kTensor, x.data(), 2}).ok());
    EXPECT_EQ(x, (std::vector<float>{0, 3}));
    return absl::OkStatus();
  }));
}

TEST(CollectivesTest, AFailedPeerIsAnError) {
  testing::ThreadGroup tensor(2);
  tensor.rank(1)->Abort("rank 1 is gone");
  Collectives collectives(tensor.rank(0), nullptr, CpuKernels::kFast);
  std::vector<float> x = {1};
  EXPECT_THAT(collectives.AllReduce({CommGroup::kTensor, x.data(), 1}),
              testing::StatusIs(absl::StatusCode::kCancelled, "rank 1 is gone"));
}

}  // namespace
}  // namespace kvasir::cpu
