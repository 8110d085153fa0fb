// Stage 4: the order of pools and groups, and every block that a pool could use: one for each page size its
// backends declare, or for each way to cut a sequence's state into equal numbers of layers; for each way to
// roll back. Which of them is used, the next stage decides. Made by the ruleset.
#ifndef KVASIR_PLANNER_CORE_PACKED_H_
#define KVASIR_PLANNER_CORE_PACKED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/admission.h"
#include "common/plan/plan.h"
#include "planner/core/grouped.h"

namespace kvasir {

struct BlockCandidate {
  std::int64_t block_tokens = 0;  // 0 for states
  std::int64_t parts = 1;
  std::int64_t block_bytes = 0;  // the pages of one block, with alignment between them
  friend auto operator<=>(const BlockCandidate&, const BlockCandidate&) = default;
};

// Parallel to Grouped::pools.
struct PackedPool {
  LifetimeKey lifetime;            // copies as the rollback asks
  std::int64_t block_rows = 1;     // most query rows of a decoding pass
  std::int64_t unit_bytes = 256;   // strides are multiples: lcm(256, alignments)
  std::int64_t payload_bytes = 0;  // without any padding: of one token's rows, or of one copy of the state
  std::vector<BlockCandidate> blocks;  // ascending
};

struct PackedVariant {
  StateRollback rollback = StateRollback::kNone;
  std::vector<PackedPool> pools;
};

// Where a layer's page lies; parallel to the layers of a pool, group after group.
struct PlacedPage {
  std::int64_t part = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t page_bytes = 0;
  friend bool operator==(const PlacedPage&, const PlacedPage&) = default;
};

struct Packed {
  Grouped grouped;  // pools and groups in plan order
  std::vector<PackedVariant> variants;

  [[nodiscard]] const PlanRequest& request() const { return grouped.validated.request(); }
};

// Bytes of a layer's page: `block_tokens` rows, or one state and under replay its ring.
[[nodiscard]] std::int64_t PageBytesOf(const PlanRequest& request, const LayerSpec& layer,
                                       StateRollback rollback, std::int64_t block_tokens);
// What one sequence asks of a pool whose blocks are `block`.
[[nodiscard]] PoolDemand DemandOf(const Packed& packed, const PackedPool& pool, std::size_t place,
                                  const BlockCandidate& block);
// Bytes of a sequence of `tokens` tokens on the fullest rank without padding, slack or rounding; saturates.
[[nodiscard]] std::int64_t PayloadBytes(const Packed& packed, const PackedPool& pool, std::size_t place,
                                        std::int64_t tokens);

// "block of 64 tokens, 2138112 bytes" or "block of 1/3 of a state, 22468608 bytes".
[[nodiscard]] std::string BlockText(const BlockCandidate& block);
[[nodiscard]] std::string ToText(const Packed& packed);
// Internal: the order is wrong, a candidate is missing, or its bytes are not between its pages' sum and that
// sum with every alignment lost.
[[nodiscard]] absl::Status Verify(const Packed& packed);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_PACKED_H_
