#include "worker/engine/random_draw.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace kvasir {
namespace {

// The known answers that the authors publish with their implementation (Random123, kat_vectors).
TEST(PhiloxTest, GivesThePublishedAnswers) {
  struct Case {
    PhiloxCounter counter;
    PhiloxKey key;
    PhiloxCounter answer;
  };
  const std::array<Case, 3> cases = {
      Case{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      Case{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
           {0xffffffff, 0xffffffff},
           {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      Case{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
           {0xa4093822, 0x299f31d0},
           {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Case& c : cases) EXPECT_EQ(Philox(c.counter, c.key), c.answer);
}

TEST(UniformDrawTest, EveryPartOfTheKeyMatters) {
  const DrawKey base{.seed = 7, .position = 9, .purpose = DrawPurpose::kToken, .index = 0};
  std::set<double> draws = {UniformDraw(base)};
  for (const DrawKey& other : {DrawKey{8, 9, DrawPurpose::kToken, 0}, DrawKey{7, 10, DrawPurpose::kToken, 0},
                               DrawKey{7, 9, DrawPurpose::kDraft, 0}, DrawKey{7, 9, DrawPurpose::kAccept, 0},
                               DrawKey{7, 9, DrawPurpose::kToken, 1},
                               DrawKey{7 + (std::uint64_t{1} << 32U), 9, DrawPurpose::kToken, 0},
                               DrawKey{7, 9 + (std::int64_t{1} << 32U), DrawPurpose::kToken, 0}}) {
    EXPECT_TRUE(draws.insert(UniformDraw(other)).second);
  }
  EXPECT_EQ(UniformDraw(base), UniformDraw(base));
}

TEST(UniformDrawTest, IsUniformInTheUnitInterval) {
  constexpr int kDraws = 200'000;
  constexpr int kBins = 50;
  std::array<int, kBins> bins = {};
  for (int i = 0; i < kDraws; ++i) {
    const double draw = UniformDraw({.seed = 1, .position = i, .purpose = DrawPurpose::kAccept});
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    ++bins[static_cast<std::size_t>(draw * kBins)];
  }
  double chi_square = 0;
  for (const int count : bins) {
    constexpr double kExpected = static_cast<double>(kDraws) / kBins;
    chi_square += (count - kExpected) * (count - kExpected) / kExpected;
  }
  EXPECT_LT(chi_square, 110);  // 49 degrees of freedom: exceeded once in 10^6
}

}  // namespace
}  // namespace kvasir
