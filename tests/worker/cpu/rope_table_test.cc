#include "worker/engine/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kvasir {
namespace {

TEST(RopeTableTest, PlainFrequenciesFallGeometrically) {
  const std::vector<float> f = RopeFrequencies({.theta = 10000}, 64);
  ASSERT_EQ(f.size(), 32U);
  EXPECT_EQ(f[0], 1.0F);
  EXPECT_NEAR(f[16], 0.01, 1e-8);
  EXPECT_NEAR(f[31], std::pow(10000.0, -62.0 / 64), 1e-9);
  EXPECT_EQ(RopeMagnitude({}), 1.0F);
}

// DeepSeek-V3: theta 10000, factor 40 over 4096, betas 32 and 1, both mscales 1, 64 lanes. The ramp's ends by
// hand: lane(t) = 64 ln(4096 / (2 pi t)) / (2 ln 10000): lane(32) = 10.47 -> 10, lane(1) = 22.51 -> 23.
TEST(RopeTableTest, YarnKeepsFastLanesAndSlowsTheOthers) {
  const Rope rope{.theta = 10000, .factor = 40, .original_context = 4096, .mscale = 1, .mscale_all_dim = 1};
  const std::vector<float> plain = RopeFrequencies({.theta = 10000}, 64);
  const std::vector<float> yarn = RopeFrequencies(rope, 64);
  for (std::size_t i = 0; i <= 10; ++i) EXPECT_EQ(yarn[i], plain[i]) << i;
  for (std::size_t i = 23; i < 32; ++i) EXPECT_NEAR(yarn[i], plain[i] / 40, 1e-6F * plain[i]) << i;
  const double ramp = (16.0 - 10.0) / 13.0;
  const double middle = static_cast<double>(plain[16]);
  EXPECT_NEAR(yarn[16], middle * (1 - ramp) + middle / 40 * ramp, 1e-8);
  EXPECT_EQ(RopeMagnitude(rope), 1.0F);
}

TEST(RopeTableTest, ScalesFollowTheMscales) {
  const MlaShape mla{.nope_dim = 128, .rope_dim = 64};
  const double plain = 1 / std::sqrt(192.0);
  EXPECT_NEAR(SoftmaxScale(mla, {}), plain, 1e-8);
  const double m = 0.1 * std::log(40.0) + 1;  // 1.3689
  const Rope both{.factor = 40, .original_context = 4096, .mscale = 1, .mscale_all_dim = 1};
  EXPECT_NEAR(SoftmaxScale(mla, both), plain * m * m, 1e-8);
  MlaShape nope = mla;
  nope.rotate = false;
  EXPECT_NEAR(SoftmaxScale(nope, both), plain, 1e-8) << "a layer that does not rotate has no YaRN";
  const Rope one{.factor = 40, .original_context = 4096, .mscale = 1, .mscale_all_dim = 0};
  EXPECT_NEAR(SoftmaxScale(mla, one), plain, 1e-8);
  EXPECT_NEAR(RopeMagnitude(one), m, 1e-6);
  const Rope half{.factor = 40, .original_context = 4096, .mscale = 1, .mscale_all_dim = 0.5};
  EXPECT_NEAR(RopeMagnitude(half), m / (0.05 * std::log(40.0) + 1), 1e-6);
}

}  // namespace
}  // namespace kvasir
