// Bytes of one block of the pool, and how many blocks memory holds.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_POOL_BYTES_H_
#define KVASIR_PLANNER_RULESETS_VLLM_POOL_BYTES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/shared_slots.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {

// How a worker's groups share its memory: the question that pool bytes, tensors and needed bytes all ask.
struct PoolShape {
  enum class Kind : std::int8_t {
    kPerLayer,     // 2026-08: one wrapper, a tensor for each layer
    kPacked,       // 2026-08: groups overlay each other inside a block of the widest group's bytes
    kSharedPages,  // 2026-08: the i-th layers of all groups share a tensor of equal pages
    kRuns,         // 2026-11: runs of equal layers, all groups from byte 0
    kSharedSlots,  // 2026-11: GLM-5.3-Flash
  };
  Kind kind = Kind::kRuns;
  std::int64_t bytes_per_block = 0;
  std::int64_t page = 0;                  // kSharedPages: of each group
  std::int64_t layers = 0;                // kSharedPages: of the largest group
  std::optional<SharedSlots> slots = {};  // kSharedSlots
};

// Requires at least one group. AssertionError for unequal pages where they must be equal, or a pool of no
// bytes; what reading a page raises. A pool of 0 bytes is returned in kSharedPages: there the engine objects
// later.
[[nodiscard]] EngineResult<PoolShape> ShapeOfPool(const SpecTable& table,
                                                  const std::vector<EngineGroup>& groups,
                                                  const EngineConfig& config);

// 2026-08's shape of equal pages, which also sizes a request where a connector packs the groups.
[[nodiscard]] EngineResult<PoolShape> SharedPagesShape(const SpecTable& table,
                                                       const std::vector<EngineGroup>& groups);

// Page of a group's spec: a wrapper's is the sum of its members'.
[[nodiscard]] EngineResult<std::int64_t> GroupPage(const SpecTable& table, const EngineGroup& group);

// Bytes of the pages of the layers that a group has here.
[[nodiscard]] EngineResult<std::int64_t> LayerPagesBytes(const SpecTable& table, const EngineGroup& group);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_POOL_BYTES_H_
