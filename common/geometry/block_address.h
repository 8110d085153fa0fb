// Where a block, a page and a slot lie inside a rank's arena. The single place that turns ids into bytes;
// 64-bit throughout, since 32 bits overflow in any arena above 4 GiB.
#ifndef KVASIR_COMMON_GEOMETRY_BLOCK_ADDRESS_H_
#define KVASIR_COMMON_GEOMETRY_BLOCK_ADDRESS_H_

#include <cstdint>

namespace kvasir {

// One layer's place inside its pool's blocks.
struct PageGeometry {
  std::int64_t stride_bytes = 0;        // from one block of the pool to the next
  std::int64_t layer_offset_bytes = 0;  // of the layer's page inside the block
  std::int64_t block_tokens = 1;        // token rows in a page
  std::int64_t row_bytes = 0;           // one token's row
};

// Offset from the arena's start of the layer's page in `block`.
[[nodiscard]] constexpr std::int64_t PageOffset(const PageGeometry& g, std::int64_t block) {
  return block * g.stride_bytes + g.layer_offset_bytes;
}

// A slot is block * block_tokens + row; -1 means "write nothing".
[[nodiscard]] constexpr std::int64_t SlotOf(const PageGeometry& g, std::int64_t block, std::int64_t row) {
  return block * g.block_tokens + row;
}

[[nodiscard]] constexpr std::int64_t SlotOffset(const PageGeometry& g, std::int64_t slot) {
  return PageOffset(g, slot / g.block_tokens) + (slot % g.block_tokens) * g.row_bytes;
}

// Where a layer's part of a sequence's recurrent state lies: in every copy of the state, at an offset inside
// the block that holds the layer's part.
struct StateGeometry {
  std::int64_t stride_bytes = 0;  // from one block of the pool to the next
  std::int64_t offset_bytes = 0;  // inside the block
  std::int64_t part = 0;          // of the copy's blocks
  std::int64_t parts = 1;
};

// Offset from the arena's start in copy `copy` of the sequence whose block table is `table`.
[[nodiscard]] constexpr std::int64_t StateOffset(const StateGeometry& g, const std::int64_t* table,
                                                 std::int64_t copy) {
  return table[copy * g.parts + g.part] * g.stride_bytes + g.offset_bytes;
}

// The parent that a block of a pool with `blocks_per_parent` lies in.
[[nodiscard]] constexpr std::int64_t ParentOf(std::int64_t block, std::int64_t blocks_per_parent) {
  return block / blocks_per_parent;
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_GEOMETRY_BLOCK_ADDRESS_H_
