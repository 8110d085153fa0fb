// A block per row: rows go to their slots, or nowhere.
#include "worker/cuda/element.cuh"
#include "worker/cuda/kernels.h"

namespace kvasir::cuda {
namespace {

__global__ void CacheWriteKernel(CacheWriteOp op) {
  const std::int64_t slot = op.slots[blockIdx.x];
  if (slot < 0) return;
  const float* in = op.in + blockIdx.x * op.in_stride;
  std::byte* row = op.arena + SlotOffset(op.page, slot);
  for (std::int64_t i = threadIdx.x; i < op.row_elements; i += kBlock) StoreElement(row, op.dtype, i, in[i]);
}

}  // namespace

void CacheWrite(const CacheWriteOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(CacheWriteKernel, BlocksFor(op.rows, 1), kBlock, 0, stream, op);
}

}  // namespace kvasir::cuda
