// Attention and combine of every backend against attention in double, over one case table.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/conformance/decode_difference.h"
#include "tests/conformance/decode_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

std::string Name(const DecodeCase& c) { return ::testing::PrintToString(c); }

class DecodeConformanceTest : public ::testing::TestWithParam<BackendUnderTest> {};

INSTANTIATE_TEST_SUITE_P(Backends, DecodeConformanceTest, ::testing::ValuesIn(BackendsUnderTest()),
                         [](const auto& test) { return test.param.name; });

TEST_P(DecodeConformanceTest, EveryCaseMatchesDoublePrecision) {
  for (const DecodeCase& c : AllDecodeCases()) {
    SCOPED_TRACE(Name(c));
    const DecodeData data = MakeData(c, 1);
    const auto got = RunDecode(GetParam(), data);
    KVASIR_ASSERT_OK(got);
    EXPECT_FALSE(got->fault);
    const ExactValues exact = ExactDecode(data);
    EXPECT_EQ(Difference(*got, exact, kFlashMla), "");
    EXPECT_EQ(Difference(*got, exact, StrictFor(GetParam(), c)), "");
    const auto again = RunDecode(GetParam(), data, {.page_seed = 2, .replay = true});
    KVASIR_ASSERT_OK(again);
    EXPECT_TRUE(got->SameBits(*again)) << "other pages, and a replay, gave other bits";
  }
}

TEST_P(DecodeConformanceTest, PlantedFaultsAreSeen) {
  for (const std::int64_t dcp : {1, 2, 4}) {
    for (const std::int64_t length : {9, 63, 130, 4099}) {
      const DecodeCase c{.batch = 1, .length = length, .query_rows = 4, .dcp = dcp, .block_tokens = 64};
      if (!ShowsABound(GetParam(), c)) continue;
      SCOPED_TRACE(Name(c));
      DecodeData data = MakeData(c, 3);
      const ExactValues exact = ExactDecode(data);
      for (const RunOptions& fault : {RunOptions{.flip_causal = true}, RunOptions{.bound_shift = -1}}) {
        const auto got = RunDecode(GetParam(), data, fault);
        KVASIR_ASSERT_OK(got);
        EXPECT_NE(Difference(*got, exact, StrictFor(GetParam(), c)), "") << "shift " << fault.bound_shift;
      }
      // A bound one too long reads a slot that holds no token: NaN, so the combine faults.
      const auto beyond = RunDecode(GetParam(), data, {.bound_shift = 1});
      KVASIR_ASSERT_OK(beyond);
      EXPECT_TRUE(beyond->fault);
      data.c.causal = false;
      const auto causal = RunDecode(GetParam(), data, {.flip_causal = true});
      KVASIR_ASSERT_OK(causal);
      EXPECT_NE(Difference(*causal, ExactDecode(data), StrictFor(GetParam(), c)), "");
    }
  }
}

TEST_P(DecodeConformanceTest, NanFaultsExactlyWhereItIsVisible) {
  for (const std::int64_t dcp : {1, 2, 4, 8}) {
    const DecodeCase c{.batch = 2, .length = 70, .query_rows = 1, .dcp = dcp};
    SCOPED_TRACE(Name(c));
    const DecodeData data = MakeData(c, 4);
    for (const std::int64_t token : {0, 1, 33, 69}) {
      const auto got = RunDecode(GetParam(), data, {.poison = token});
      KVASIR_ASSERT_OK(got);
      EXPECT_TRUE(got->fault) << "token " << token;
    }
    // The last token of a causal row that stops before it.
    DecodeCase two = c;
    two.query_rows = 2;
    const DecodeData pair = MakeData(two, 4);
    const auto clean = RunDecode(GetParam(), pair);
    const auto got = RunDecode(GetParam(), pair, {.poison = 69});
    KVASIR_ASSERT_OK(clean);
    KVASIR_ASSERT_OK(got);
    EXPECT_TRUE(got->fault);
    const std::size_t row = static_cast<std::size_t>(two.heads * two.latent);
    EXPECT_TRUE(
        std::equal(got->out.begin(), got->out.begin() + static_cast<std::ptrdiff_t>(row), clean->out.begin()))
        << "row 0 does not see token 69, and changed";
  }
}

// Takes request `b` of `data` out, with its row `i` alone when `one_row`.
DecodeData Extract(const DecodeData& data, std::int64_t b, std::int64_t i, bool one_row) {
  DecodeData out = data;
  const std::int64_t row_values = data.c.heads * data.c.width();
  const std::int64_t first = (b * data.c.query_rows + i) * row_values;
  const std::int64_t length = data.lengths[static_cast<std::size_t>(b)];
  out.c.batch = 1;
  out.c.query_rows = one_row ? 1 : data.c.query_rows;
  const std::int64_t kept = one_row && data.c.causal ? length - data.c.query_rows + i + 1 : length;
  out.c.length = kept;
  out.lengths = {kept};
  out.cache = {data.cache[static_cast<std::size_t>(b)]};
  out.cache[0].resize(static_cast<std::size_t>(kept * data.c.width()));
  out.q.assign(data.q.begin() + first, data.q.begin() + first + out.c.query_rows * row_values);
  return out;
}

TEST_P(DecodeConformanceTest, ARowsBitsDependOnItsOwnSequenceAlone) {
  for (const std::int64_t dcp : {1, 2, 4}) {
    for (const bool causal : {true, false}) {
      const DecodeCase c{.batch = 3, .length = 139, .query_rows = 4, .causal = causal, .dcp = dcp};
      SCOPED_TRACE(Name(c));
      const DecodeData data = MakeData(c, 5);
      const auto batch = RunDecode(GetParam(), data);
      KVASIR_ASSERT_OK(batch);
      const std::size_t row_values = static_cast<std::size_t>(c.heads * c.latent);
      for (std::int64_t b = 0; b < c.batch; ++b) {
        for (std::int64_t i = 0; i < c.query_rows; ++i) {
          const auto alone = RunDecode(GetParam(), Extract(data, b, i, true));
          KVASIR_ASSERT_OK(alone);
          const std::size_t row = static_cast<std::size_t>(b * c.query_rows + i);
          EXPECT_TRUE(std::equal(alone->out.begin(), alone->out.end(),
                                 batch->out.begin() + static_cast<std::ptrdiff_t>(row * row_values)))
              << "request " << b << ", row " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::testing
