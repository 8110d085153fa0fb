#include "worker/service/saved_states.h"

#include <cstdint>
#include <set>
#include <utility>

#include "common/base/status_macros.h"

namespace kvasir {

absl::StatusOr<SavedStates> SavedStates::Save(Backend& backend, const Plan& plan, std::byte* arena,
                                              std::span<const StepSequence> sequences) {
  SavedStates saved;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const PlanPool& pool = plan.pools[p];
    if (pool.lifetime.kind != LifetimeKind::kPerSequence) continue;
    for (const StepSequence& sequence : sequences) {
      for (const std::int64_t copy : std::set<std::int64_t>{0, sequence.committed % pool.lifetime.copies}) {
        for (std::int64_t part = 0; part < pool.parts; ++part) {
          const BlockId id = sequence.blocks[p][static_cast<std::size_t>(copy * pool.parts + part)];
          Block block{.at = arena + id.value() * pool.stride_bytes};
          block.bytes.resize(static_cast<std::size_t>(pool.block_bytes));
          KVASIR_RETURN_IF_ERROR(backend.Read(block.bytes, block.at));
          saved.blocks_.push_back(std::move(block));
        }
      }
    }
  }
  return saved;
}

absl::Status SavedStates::Restore(Backend& backend) const {
  for (const Block& block : blocks_) KVASIR_RETURN_IF_ERROR(backend.Write(block.at, block.bytes));
  return absl::OkStatus();
}

}  // namespace kvasir
