#include "tests/conformance/decode_pages.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "common/geometry/bf16.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kAbsurdBlock = 2147480000;

void StoreToken(const DecodeData& data, const float* row, std::byte* to) {
  if (data.c.dtype == DType::kF32) {
    std::memcpy(to, row, static_cast<std::size_t>(4 * data.c.width()));
    return;
  }
  for (std::int64_t i = 0; i < data.c.width(); ++i) {
    const std::uint16_t bits = FloatToBf16(row[i]);
    std::memcpy(to + 2 * i, &bits, 2);
  }
}

}  // namespace

// Blocks are numbered alike on all ranks, as in a real pool; one unused layer before ours keeps offsets
// honest.
PagedCache PageData(const DecodeData& data, const DecodeCase& capacity, const ContextShard& shard,
                    const RunOptions& options) {
  const DecodeCase& c = data.c;
  PagedCache paged;
  paged.page.block_tokens = c.block_tokens;
  paged.page.row_bytes = c.width() * DTypeBytes(c.dtype);
  paged.page.layer_offset_bytes = c.block_tokens * paged.page.row_bytes;
  paged.page.stride_bytes = 2 * paged.page.layer_offset_bytes + 256;
  const std::int64_t columns = capacity.longest() / (c.block_tokens * c.dcp) + 1;
  paged.table_width = columns + 1;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(capacity.batch * columns));
  std::iota(ids.begin(), ids.end(), std::int64_t{1});
  std::mt19937_64 random(options.page_seed);
  std::shuffle(ids.begin(), ids.end(), random);
  // All bits set is a NaN in bf16 and in f32.
  paged.arena.assign((ids.size() + 1) * static_cast<std::size_t>(paged.page.stride_bytes), std::byte{0xff});
  paged.table.assign(static_cast<std::size_t>(capacity.batch * paged.table_width), kAbsurdBlock);
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const std::int64_t length = data.lengths[static_cast<std::size_t>(b)];
    for (std::int64_t p = 0; p < length; ++p) {
      const std::int64_t column = p / (c.block_tokens * c.dcp);
      const std::int64_t id = ids[static_cast<std::size_t>(b * columns + column)];
      paged.table[static_cast<std::size_t>(b * paged.table_width + column)] = id;
      if (OwnerOf(shard, p) != shard.rank || (b == 0 && p == options.poison)) continue;
      const std::int64_t slot = SlotOf(paged.page, id, LocalPosition(shard, p) % c.block_tokens);
      StoreToken(data, data.cache[static_cast<std::size_t>(b)].data() + p * c.width(),
                 paged.arena.data() + SlotOffset(paged.page, slot));
    }
  }
  return paged;
}

std::vector<std::int64_t> BoundsOf(const DecodeData& data, const DecodeCase& capacity,
                                   const ContextShard& shard, const RunOptions& options) {
  const DecodeCase& c = data.c;
  std::vector<std::int64_t> bounds(static_cast<std::size_t>(capacity.batch * c.query_rows), 0);
  for (std::int64_t row = 0; row < data.rows(); ++row) {
    const std::int64_t length = data.lengths[static_cast<std::size_t>(row / c.query_rows)];
    const std::int64_t rows = std::min(length, c.query_rows);
    const std::int64_t i = row % c.query_rows;
    std::int64_t& bound = bounds[static_cast<std::size_t>(row)];
    if (options.naive_bounds && i < rows) {
      bound = std::max<std::int64_t>(0, LocalLength(shard, length) - (rows - 1 - i));
      continue;
    }
    bound = RowBound(length, rows, i, c.causal != options.flip_causal);
    if (bound > 0) bound = std::max<std::int64_t>(0, bound + options.bound_shift);
    bound = LocalLength(shard, bound);
  }
  return bounds;
}

}  // namespace kvasir::testing
