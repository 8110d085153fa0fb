// The paged image of one rank's cache: pages in shuffled order, NaN in every slot that holds no token, absurd
// ids in unused table entries. And the bounds of each row.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_PAGES_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/geometry/block_address.h"
#include "common/geometry/context_shard.h"
#include "tests/conformance/decode_rig.h"

namespace kvasir::testing {

struct PagedCache {
  PageGeometry page;
  std::vector<std::byte> arena;
  std::vector<std::int64_t> table;  // [batch of the capacity, width]
  std::int64_t table_width = 0;
};

// The requests that `data` lacks of `capacity` have absurd ids only.
[[nodiscard]] PagedCache PageData(const DecodeData& data, const DecodeCase& capacity,
                                  const ContextShard& shard, const RunOptions& options);

// [rows of the capacity], in this rank's own tokens; 0 for padding.
[[nodiscard]] std::vector<std::int64_t> BoundsOf(const DecodeData& data, const DecodeCase& capacity,
                                                 const ContextShard& shard, const RunOptions& options);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_DECODE_PAGES_H_
