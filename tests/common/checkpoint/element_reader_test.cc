// Elements as fp32, against values worked out by hand.
#include "common/checkpoint/element_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/testing/checkpoint_writer.h"

namespace kvasir {
namespace {

TEST(ElementReader, WidensF16) {
  struct {
    std::uint16_t bits;
    float value;
  } const cases[] = {{0x0000, 0.0F},
                     {0x3c00, 1.0F},
                     {0xc000, -2.0F},
                     {0x3555, 1365.0F / 4096.0F},  // 0.333251953125
                     {0x7bff, 65504.0F},
                     {0x0400, std::ldexp(1.0F, -14)},
                     {0x0001, std::ldexp(1.0F, -24)},
                     {0x83ff, -1023.0F * std::ldexp(1.0F, -24)},
                     {0x7c00, std::numeric_limits<float>::infinity()}};
  for (const auto& c : cases) EXPECT_EQ(F16ToFloat(c.bits), c.value) << c.bits;
  EXPECT_TRUE(std::isnan(F16ToFloat(0x7e00)));
  EXPECT_TRUE(std::signbit(F16ToFloat(0x8000)));
}

TEST(ElementReader, WidensE4M3) {
  struct {
    std::uint8_t bits;
    float value;
  } const cases[] = {{0x00, 0.0F},         {0x38, 1.0F},        {0x39, 1.125F}, {0xb8, -1.0F},
                     {0x7e, 448.0F},       {0xfe, -448.0F},     {0x40, 2.0F},   {0x08, 0.015625F},
                     {0x01, 0.001953125F}, {0x07, 0.013671875F}};
  for (const auto& c : cases) EXPECT_EQ(E4M3ToFloat(c.bits), c.value) << int{c.bits};
  EXPECT_TRUE(std::isnan(E4M3ToFloat(0x7f)));
  EXPECT_TRUE(std::isnan(E4M3ToFloat(0xff)));
}

// 130 rows and 257 columns: 2 x 3 blocks, the last of each incomplete. Every element is 1.5 (0x3c), so the
// result is 1.5 times the scale of the element's block.
TEST(ElementReader, MultipliesE4M3ByTheScaleOfItsBlock) {
  const std::string bytes(std::size_t{130} * 257, '\x3c');
  const std::vector<float> scales = {1, 2, 3, 4, 5, 6};
  const StoredMatrix matrix{.type = StoredType::kF8E4M3,
                            .rows = 130,
                            .cols = 257,
                            .bytes = bytes,
                            .scales = std::string_view(reinterpret_cast<const char*>(scales.data()),
                                                       scales.size() * sizeof(float))};
  std::vector<float> row(257);
  for (const std::int64_t r : {0, 127, 128, 129}) {
    ReadRow(matrix, r, 0, 257, row.data());
    const float first = r < 128 ? 1.0F : 4.0F;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t block = c / 128;
      ASSERT_EQ(row[c], 1.5F * (first + static_cast<float>(block))) << r << " " << c;
    }
  }
  float part[3] = {};
  ReadRow(matrix, 128, 127, 3, part);
  EXPECT_EQ(part[0], 6.0F);
  EXPECT_EQ(part[1], 7.5F);
  EXPECT_EQ(part[2], 7.5F);
}

TEST(ElementReader, APartOfARowIsThatPartOfTheWholeRowInEveryType) {
  for (const StoredType type : {StoredType::kBf16, StoredType::kF16, StoredType::kF32, StoredType::kF8E4M3}) {
    const testing::WrittenTensor tensor = testing::RandomTensor("t", type, {3, 200}, 5);
    const testing::WrittenTensor scales = testing::RandomTensor("s", StoredType::kF32, {1, 2}, 6);
    const std::string shifted = "x" + tensor.bytes;  // elements need not be aligned
    const StoredMatrix matrix{.type = type,
                              .rows = 3,
                              .cols = 200,
                              .bytes = std::string_view(shifted).substr(1),
                              .scales = scales.bytes};
    std::vector<float> whole(200);
    ReadRow(matrix, 2, 0, 200, whole.data());
    for (const std::int64_t begin : {0, 1, 100, 199}) {
      std::vector<float> part(static_cast<std::size_t>(200 - begin));
      ReadRow(matrix, 2, begin, 200 - begin, part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + begin, part.size() * sizeof(float)), 0) << begin;
    }
  }
}

}  // namespace
}  // namespace kvasir
