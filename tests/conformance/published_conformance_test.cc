// Attention and combine of every backend at the published geometry against attention in double: a covering
// part of the product, batch mixes and splits in every test run; with KVASIR_WHOLE_TABLES=1 the whole product
// (published_case.h). And graphs of that geometry that are replayed while batches, pages and bounds change.
#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/conformance/decode_difference.h"
#include "tests/conformance/decode_rig.h"
#include "tests/conformance/published_case.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

bool WholeTables() {
  const char* asked =
      std::getenv("KVASIR_WHOLE_TABLES");  // NOLINT(concurrency-mt-unsafe): nothing sets variables here
  return asked != nullptr && std::string(asked) == "1";
}

class PublishedConformanceTest : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  // Within both tolerances; and over other pages, as a replay of the same shape, the same bits. The reference
  // runs once: others are held against it, and it is slow.
  static void Check(const DecodeData& data, const ExactValues& exact) {
    SCOPED_TRACE(::testing::PrintToString(data.c));
    const DecodePhase phases[] = {{&data}, {&data, {.page_seed = 2, .replay = true}}};
    const auto got = RunPhases(GetParam(), std::span(phases).first(IsReference() ? 1 : 2));
    KVASIR_ASSERT_OK(got);
    EXPECT_FALSE(got->front().fault);
    EXPECT_EQ(Difference(got->front(), exact, kFlashMla), "");
    EXPECT_EQ(Difference(got->front(), exact, StrictFor(GetParam(), data.c)), "");
    EXPECT_TRUE(got->front().SameBits(got->back())) << "other pages, and a replay, gave other bits";
  }
  static void Check(const DecodeCase& c) {
    const DecodeData data = MakeData(c, 1);
    Check(data, ExactDecode(data));
  }
  // Every shape in every world.
  static void CheckProduct(const std::vector<DecodeCase>& shapes) {
    for (const DecodeCase& shape : shapes) {
      DecodeData data = MakeData(shape, 1);
      const ExactValues exact = ExactDecode(data);
      for (const DecodeCase& c : InEveryWorld(shape)) {
        data.c = c;
        Check(data, exact);
      }
    }
  }
  // All of them; of those that run a fiber per thread every third, unless the whole tables were asked for.
  static void CheckSome(const std::vector<DecodeCase>& cases) {
    const std::size_t step = GetParam().name == "cuda" && !WholeTables() ? 3 : 1;
    for (std::size_t i = 0; i < cases.size(); i += step) Check(cases[i]);
  }
  [[nodiscard]] static bool IsReference() { return GetParam().name == "reference"; }
  // The reference computes in double itself: for it the small part is enough. So it must be where threads are
  // fibers, which would take hours.
  [[nodiscard]] static bool Whole() { return WholeTables() && !IsReference() && GetParam().name != "cuda"; }
};

INSTANTIATE_TEST_SUITE_P(Backends, PublishedConformanceTest, ::testing::ValuesIn(BackendsUnderTest()),
                         [](const auto& test) { return test.param.name; });

TEST_P(PublishedConformanceTest, EveryCaseMatchesDoublePrecision) {
  if (Whole()) return CheckProduct(PublishedShapes());
  CheckSome(PublishedPairs());
}

TEST_P(PublishedConformanceTest, BatchesOfAllLengthsMatch) {
  const std::vector<DecodeCase> mixes = PublishedMixes();
  if (Whole()) return CheckProduct(mixes);
  for (std::size_t i = 0; i < mixes.size(); ++i) {
    const std::vector<DecodeCase> worlds = InEveryWorld(mixes[i]);
    Check(worlds[i % worlds.size()]);
  }
}

TEST_P(PublishedConformanceTest, SplitsOfEveryLengthMatch) { CheckSome(PublishedSplits()); }

// Shapes of a world each, for what need not be seen in all.
std::vector<DecodeCase> FewWorlds() {
  std::vector<DecodeCase> cases;
  for (const auto& [dcp, interleave] : {std::pair{1, 1}, {2, 1}, {4, 16}, {8, 64}, {8, 1}}) {
    cases.push_back(PublishedShape());
    cases.back().heads = 8;
    cases.back().dcp = dcp;
    cases.back().interleave = interleave;
  }
  return cases;
}

TEST_P(PublishedConformanceTest, PlantedFaultsAreSeen) {
  for (DecodeCase c : FewWorlds()) {
    c.query_rows = 4;
    for (const std::int64_t length : {9, 63, 130, 259, 4099}) {
      c.length = length;
      if (!ShowsABound(GetParam(), c)) continue;
      SCOPED_TRACE(::testing::PrintToString(c));
      const DecodeData data = MakeData(c, 3);
      const ExactValues exact = ExactDecode(data);
      std::vector<RunOptions> faults = {{.flip_causal = true}, {.bound_shift = -1}};
      // Where one rank holds the rows' own tokens, its length less a distance is right.
      if (c.dcp > 1 && length > 65) faults.push_back({.naive_bounds = true});
      for (const RunOptions& fault : faults) {
        const auto got = RunDecode(GetParam(), data, fault);
        KVASIR_ASSERT_OK(got);
        EXPECT_NE(Difference(*got, exact, StrictFor(GetParam(), c)), "")
            << "shift " << fault.bound_shift << ", naive " << fault.naive_bounds;
      }
      // A bound one too long reads a slot that holds no token: NaN, so the combine faults.
      const auto beyond = RunDecode(GetParam(), data, {.bound_shift = 1});
      KVASIR_ASSERT_OK(beyond);
      EXPECT_TRUE(beyond->fault);
    }
  }
}

TEST_P(PublishedConformanceTest, NanFaultsExactlyWhereItIsVisible) {
  for (DecodeCase c : FewWorlds()) {
    c.length = 130;
    c.query_rows = 2;
    SCOPED_TRACE(::testing::PrintToString(c));
    const DecodeData data = MakeData(c, 4);
    const auto clean = RunDecode(GetParam(), data);
    KVASIR_ASSERT_OK(clean);
    for (const std::int64_t token : {0, 63, 64, 127, 129}) {
      const auto got = RunDecode(GetParam(), data, {.poison = token});
      KVASIR_ASSERT_OK(got);
      EXPECT_TRUE(got->fault) << "token " << token;
      if (token < 129) continue;
      // The first row stops before the last token.
      const std::vector<float> first(clean->out.begin(), clean->out.begin() + c.heads * c.latent);
      EXPECT_EQ(std::vector<float>(got->out.begin(), got->out.begin() + c.heads * c.latent), first);
    }
  }
}

// Replays every phase in one process, and requires the bits of an eager run of each alone, and the exact
// values.
void CheckReplays(const BackendUnderTest& backend, const std::vector<DecodeData>& steps) {
  std::vector<DecodePhase> phases;
  phases.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    phases.push_back({&steps[i], {.page_seed = i + 1, .replay = true}});
  }
  const auto replayed = RunPhases(backend, phases);
  KVASIR_ASSERT_OK(replayed);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i) + ": " + ::testing::PrintToString(steps[i].c));
    const DecodeValues& got = (*replayed)[i];
    const auto alone = RunDecode(backend, steps[i]);
    KVASIR_ASSERT_OK(alone);
    EXPECT_FALSE(got.fault);
    EXPECT_TRUE(got.SameBits(*alone)) << "a replay gave other bits than an eager run";
    const ExactValues exact = ExactDecode(steps[i]);
    EXPECT_EQ(Difference(got, exact, kFlashMla), "");
    EXPECT_EQ(Difference(got, exact, StrictFor(backend, steps[i].c)), "");
  }
}

// One graph of eight requests: full, one request, full again with other tokens on other pages, then the first
// tokens with the bounds of either causality, half as many requests that are one token longer, and empty
// ones.
TEST_P(PublishedConformanceTest, OneGraphServesBatchesThatShrinkAndGrow) {
  for (DecodeCase c : FewWorlds()) {
    for (const std::int64_t query_rows : {1, 8}) {
      c.query_rows = query_rows;
      c.dtype = query_rows == 1 ? DType::kF32 : DType::kBf16;
      const DecodeCase full = Mixed(c, {130, 0, 63, 259, 1, 64, 8, 65});
      DecodeCase turned = full;
      turned.causal = false;
      CheckReplays(GetParam(), {MakeData(full, 1), MakeData(Mixed(c, {127}), 2),
                                MakeData(Mixed(c, {259, 64, 0, 0, 129, 7, 65, 63}), 3), MakeData(full, 1),
                                MakeData(turned, 1), MakeData(Mixed(c, {131, 1, 64, 260}), 4),
                                MakeData(Mixed(c, {0, 0}), 5), MakeData(full, 6)});
    }
  }
}

// A causal target of 96 heads and 1 + 7 rows; a non-causal draft of 64 heads and 7 rows, and one that has the
// rows and heads of another causal target, so that one graph serves both.
TEST_P(PublishedConformanceTest, DraftAndTargetTakeTurns) {
  for (DecodeCase c : FewWorlds()) {
    if (c.dcp == 2 || c.interleave == 64) continue;
    std::vector<DecodeData> steps;
    for (const std::int64_t length : {65, 130}) {
      const std::vector<std::int64_t> lengths = {length, 7};
      for (const auto& [heads, query_rows, causal] :
           {std::tuple{96, 8, true}, {64, 7, false}, {64, 8, true}, {64, 8, false}}) {
        c.heads = heads;
        c.query_rows = query_rows;
        c.causal = causal;
        steps.push_back(MakeData(Mixed(c, lengths), 7));
      }
    }
    CheckReplays(GetParam(), steps);
  }
}

}  // namespace
}  // namespace kvasir::testing
