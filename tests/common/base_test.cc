#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/base/insert_sorted.h"
#include "common/base/sha256.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace kvasir {
namespace {

struct Sha256Case {
  std::string name;
  std::string input;
  std::string want;
};
void PrintTo(const Sha256Case& c, std::ostream* out) { *out << c.name; }

class Sha256Test : public ::testing::TestWithParam<Sha256Case> {};

TEST_P(Sha256Test, GivesThePublishedDigest) { EXPECT_EQ(Sha256Hex(GetParam().input), GetParam().want); }

// FIPS 180-4 examples, and the lengths around one block where the padding changes shape.
INSTANTIATE_TEST_SUITE_P(
    Published, Sha256Test,
    ::testing::Values(
        Sha256Case{"empty", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        Sha256Case{"abc", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        Sha256Case{"two_blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        Sha256Case{"million_a", std::string(1000000, 'a'),
                   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
        Sha256Case{"a_55", std::string(55, 'a'),
                   "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        Sha256Case{"a_56", std::string(56, 'a'),
                   "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        Sha256Case{"a_64", std::string(64, 'a'),
                   "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"}));

TEST(CheckedMathTest, ReportsOverflowInsteadOfWrapping) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(CheckedMul(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(CheckedRoundUp(kMax, 256), std::nullopt);
  EXPECT_EQ(CheckedRoundUp(257, 256), 512);
  EXPECT_EQ(CheckedRoundUp(0, 256), 0);
  EXPECT_EQ(CheckedLcm(256, 576), 2304);
  EXPECT_EQ(CheckedLcm(kMax, kMax - 1), std::nullopt);
}

TEST(CheckedMathTest, CeilDivHasNoOverflowAtTheTop) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(CeilDiv(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(CeilDiv(kMax, kMax), 1);
  EXPECT_EQ(CeilDiv(0, 7), 0);
}

TEST(Utf8Test, TakesWhatTheStandardTakes) {
  for (const char* good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "Z\xc3\xbcrich"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  // Lone and missing continuations, overlong forms, a surrogate, beyond U+10FFFF, bytes that never occur.
  for (const char* bad :
       {"\x80", "\xbf", "a\xc2", "\xc2 ", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xe0\xa0", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(CheckTest, StaysOnWhateverNdebugSays) {
  EXPECT_DEATH(KVASIR_CHECK(1 + 1 == 3), "internal error: check failed: 1 \\+ 1 == 3");
}

TEST(InsertSorted, EqualItemsStayInTheOrderOfInsertion) {
  std::vector<std::pair<int, char>> sorted;
  const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
  for (const std::pair<int, char>& item :
       {std::pair{2, 'a'}, {1, 'b'}, {2, 'c'}, {1, 'd'}, {3, 'e'}, {2, 'f'}})
    InsertSorted(sorted, item, before);
  std::string order;
  for (const auto& [key, letter] : sorted) order += letter;
  EXPECT_EQ(order, "bdacfe");
}

}  // namespace
}  // namespace kvasir
