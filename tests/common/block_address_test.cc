#include "common/geometry/block_address.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/geometry/bf16.h"
#include "common/geometry/dtype.h"

namespace kvasir {
namespace {

TEST(BlockAddressTest, StaysExactFarAboveFourGiB) {
  const PageGeometry page{
      .stride_bytes = 2141184, .layer_offset_bytes = 73728, .block_tokens = 64, .row_bytes = 1152};
  const std::int64_t block = 1'000'000;
  EXPECT_EQ(PageOffset(page, block), 2'141'184'073'728);
  const std::int64_t slot = SlotOf(page, block, 63);
  EXPECT_EQ(SlotOffset(page, slot), 2'141'184'073'728 + 63 * 1152);
}

TEST(BlockAddressTest, NullParentHoldsTheFirstBlocks) {
  EXPECT_EQ(ParentOf(0, 21), 0);
  EXPECT_EQ(ParentOf(20, 21), 0);
  EXPECT_EQ(ParentOf(21, 21), 1);
}

TEST(Bf16Test, EveryBf16RoundTripsAndRoundingIsToNearestEven) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = Bf16ToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(value))));
    } else {
      EXPECT_EQ(FloatToBf16(value), half);
    }
  }
  // 1 + 2^-8 lies halfway between 1 and 1 + 2^-7: the even one is 1.
  EXPECT_EQ(Bf16ToFloat(FloatToBf16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(Bf16ToFloat(FloatToBf16(1.0F + 0x3p-8F)), 1.0F + 0x2p-7F);
  EXPECT_TRUE(std::isinf(Bf16ToFloat(FloatToBf16(std::numeric_limits<float>::max()))));
}

TEST(DTypeTest, NamesParseBack) {
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32, DType::kFp8E4M3}) {
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_EQ(ParseDType("float64"), std::nullopt);
}

}  // namespace
}  // namespace kvasir
