// One token's row of a paged cache, to and from floats.
#ifndef KVASIR_WORKER_CPU_CACHE_ROW_H_
#define KVASIR_WORKER_CPU_CACHE_ROW_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/geometry/bf16.h"
#include "common/geometry/block_address.h"
#include "common/geometry/dtype.h"

namespace kvasir::cpu {

// A request's token number `local` (of this rank's tokens), through its block table.
[[nodiscard]] inline const std::byte* CacheRow(const std::byte* arena, const PageGeometry& page,
                                               const std::int64_t* block_table, std::int64_t local) {
  const std::int64_t block = block_table[local / page.block_tokens];
  return arena + SlotOffset(page, SlotOf(page, block, local % page.block_tokens));
}

// `dtype` is kBf16 or kF32: the model builder refuses every other cache type before a list exists.
inline void LoadRow(const std::byte* row, DType dtype, std::int64_t count, float* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, row, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, row + 2 * i, sizeof bits);
    out[i] = Bf16ToFloat(bits);
  }
}

inline void StoreRow(const float* in, DType dtype, std::int64_t count, std::byte* row) {
  if (dtype == DType::kF32) {
    std::memcpy(row, in, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = FloatToBf16(in[i]);
    std::memcpy(row + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_CACHE_ROW_H_
