#include "worker/cpu/cache_row.h"
#include "worker/cpu/cpu_kernels.h"

namespace kvasir::cpu {

void CacheWrite(const CacheWriteOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    if (op.slots[r] < 0) continue;
    StoreRow(op.in + r * op.in_stride, op.dtype, op.row_elements,
             op.arena + SlotOffset(op.page, op.slots[r]));
  }
}

}  // namespace kvasir::cpu
