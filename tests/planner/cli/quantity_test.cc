#include "planner/cli/quantity.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

using testing::StatusIs;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(ParseBytes, ExactDecimals) {
  struct Case {
    std::string text;
    std::int64_t bytes;
  };
  for (const Case& c :
       {Case{"1000000", 1000000}, Case{"0", 0}, Case{"512MiB", 536870912}, Case{"1B", 1},
        Case{"46.8GiB", 50251117363}, Case{"46.80GiB", 50251117363}, Case{"0.5KiB", 512}, Case{".5KiB", 512},
        Case{"1.5TB", 1500000000000}, Case{"1gib", 1073741824}, Case{"1kb", 1000}, Case{"0.1B", 0},
        Case{"0.0009765625KiB", 1}, Case{"1TiB", 1099511627776},
        Case{"999999999999999999", 999999999999999999}, Case{"8388607TiB", 9223370937343148032}}) {
    const auto bytes = ParseBytes(c.text);
    KVASIR_ASSERT_OK(bytes) << c.text;
    EXPECT_EQ(*bytes, c.bytes) << c.text;
  }
}

TEST(ParseBytes, RefusesByName) {
  for (const std::string text :
       {"", "GiB", "-1", "+1", "1 GiB", "1.GiB", "1..5GiB", "1.2.3", "1e9", "1Gi", "1G", "12GiBx", "0x10",
        "NaN", "8388608TiB", "9999999999999999999", "1,5GiB"}) {
    EXPECT_THAT(ParseBytes(text), StatusIs(absl::StatusCode::kInvalidArgument, "size \"" + text + "\""))
        << text;
  }
}

TEST(ParseBytes, Lists) {
  const auto list = ParseBytesList("1KiB,2KiB,3");
  KVASIR_ASSERT_OK(list);
  EXPECT_EQ(*list, (std::vector<std::int64_t>{1024, 2048, 3}));
  EXPECT_FALSE(ParseBytesList("1KiB,,3").ok());
  EXPECT_FALSE(ParseBytesList("1KiB,").ok());
}

TEST(ParseContexts, UnitsAndMax) {
  const auto list = ParseContexts("8k,32K,131072,1m,max");
  KVASIR_ASSERT_OK(list);
  EXPECT_EQ(*list, (std::vector<std::int64_t>{8192, 32768, 131072, 1048576, 0}));
  for (const char* text :
       {"", "0", "-8k", "8.5k", "8kk", "k", "maximum", "8k,", "9223372036854775807k", "2000m"}) {
    EXPECT_THAT(ParseContexts(text), StatusIs(absl::StatusCode::kInvalidArgument, "context")) << text;
  }
}

// One number as our own output writes it, which as a list would be of lengths that nobody asks for.
TEST(ParseContexts, ACommaSeparatesLengthsAndNotThousands) {
  EXPECT_THAT(ParseContexts("131,072"), StatusIs(absl::StatusCode::kInvalidArgument, "write 131072"));
  EXPECT_THAT(ParseContexts("1,048,576"), StatusIs(absl::StatusCode::kInvalidArgument, "write 1048576"));
  KVASIR_EXPECT_OK(ParseContexts("4096,128"));
  KVASIR_EXPECT_OK(ParseContexts("64,128k"));
}

TEST(Text, Bytes) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(50251117363), "46.80 GiB");
  EXPECT_EQ(BytesText(1048575), "1,024.00 KiB");
  EXPECT_EQ(BytesText(std::int64_t{1} << 50), "1,024.00 TiB");
  EXPECT_EQ(BytesText(kMax), "8,388,608.00 TiB");
}

TEST(Text, NumbersTokensAndPercent) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1048576), "1,048,576");
  EXPECT_EQ(Thousands(-1234), "-1,234");
  EXPECT_EQ(TokensText(8192), "8k");
  EXPECT_EQ(TokensText(1048576), "1m");
  EXPECT_EQ(TokensText(1000), "1000");
  EXPECT_EQ(PercentText(1, 3), "33.3 %");
  EXPECT_EQ(PercentText(0, 5), "0.0 %");
  EXPECT_EQ(PercentText((std::int64_t{1} << 50) - 1, std::int64_t{1} << 50), "100.0 %");
}

TEST(ParsePercent, IsExact) {
  EXPECT_EQ(*ParsePercent("2%"), 200);
  EXPECT_EQ(*ParsePercent("2"), 200);
  EXPECT_EQ(*ParsePercent("2.5 %"), 250);
  EXPECT_EQ(*ParsePercent("0.25%"), 25);
  EXPECT_EQ(*ParsePercent("0"), 0);
  EXPECT_EQ(*ParsePercent("100%"), 10000);
  for (const char* bad : {"", "%", ".5", "2.", "2.123", "-1", "+1", "1e1", "100.01", "101", "2%%", "two"}) {
    EXPECT_FALSE(ParsePercent(bad).ok()) << bad;
  }
}

TEST(ChangeText, HasASign) {
  EXPECT_EQ(ChangeText(80, 71), "-11.3 %");
  EXPECT_EQ(ChangeText(48, 81), "+68.8 %");
  EXPECT_EQ(ChangeText(1, 31), "+3,000.0 %");
  EXPECT_EQ(ChangeText(7, 7), "±0.0 %");
  EXPECT_EQ(ChangeText(0, 7), "new");
  EXPECT_EQ(ChangeText(7, 0), "-100.0 %");
}

}  // namespace
}  // namespace kvasir::cli
