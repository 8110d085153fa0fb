// Elements of a stored tensor as fp32. Widening BF16, F16 and F8_E4M3 is exact; F8_E4M3 is then multiplied by
// the scale of its block, one rounding (DeepSeek-V3's published form: `weight_scale_inv`, one F32 for each
// block of 128 x 128 elements, by which the stored number is multiplied).
#ifndef KVASIR_COMMON_CHECKPOINT_ELEMENT_READER_H_
#define KVASIR_COMMON_CHECKPOINT_ELEMENT_READER_H_

#include <cstdint>
#include <string_view>

#include "common/checkpoint/stored_type.h"

namespace kvasir {

inline constexpr std::int64_t kScaleBlock = 128;

[[nodiscard]] float F16ToFloat(std::uint16_t bits);
// OCP E4M3: no infinities; S.1111.111 is NaN.
[[nodiscard]] float E4M3ToFloat(std::uint8_t bits);

// Whether ReadRow knows the type.
[[nodiscard]] bool IsReadable(StoredType type);

// A matrix as it lies in a file; both views hold exactly its bytes.
struct StoredMatrix {
  StoredType type = StoredType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::string_view bytes;
  std::string_view scales;  // F32 [ceil(rows / 128), ceil(cols / 128)]; only for F8_E4M3
};

// Writes elements [col_begin, col_begin + count) of `row` to `out`. Requires a readable type and elements
// inside the matrix.
void ReadRow(const StoredMatrix& matrix, std::int64_t row, std::int64_t col_begin, std::int64_t count,
             float* out);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_ELEMENT_READER_H_
