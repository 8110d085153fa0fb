// Convolutions and gates of recurrent layers: a thread per channel, which goes through its request's rows
// itself, so that what a row leaves in the history is there for the next.
#include "worker/cuda/kernels.h"
#include "worker/cuda/recurrent.cuh"

namespace kvasir::cuda {
namespace {

// ln(1 + e^x), without overflow.
[[nodiscard]] __device__ float Softplus(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

// grid: (channels, requests)
__global__ void ShortConvKernel(ShortConvOp op) {
  const std::int64_t c = GridThread();
  if (c >= op.channels) return;
  const std::int64_t* table = op.block_table + blockIdx.y * op.table_width;
  History history;
  history.dtype = op.dtype;
  history.tokens = op.history;
  history.stride = op.history_stride;
  for (std::int64_t i = 0; i < op.query_rows; ++i) {
    const std::int64_t r = blockIdx.y * op.query_rows + i;
    float& x = op.x[r * op.row_stride + c];
    const std::int64_t bound = op.bounds[r];
    if (bound == 0) {  // padding; its block table may hold anything
      x = 0;
      continue;
    }
    history.at = op.arena + StateOffset(op.state, table, 0);
    const float own = Rounded(x, op.dtype);
    x = Convolved(history, op.history_begin + c, op.weight + c * op.kernel, op.kernel, bound - 1, own);
    history.Store(bound - 1, op.history_begin + c, own);
  }
}

// grid: (row, head, dim) in one dimension
__global__ void KdaGateKernel(KdaGateOp op) {
  for (std::int64_t at = GridThread(); at < op.rows * op.heads * op.dim; at += GridThreads()) {
    const std::int64_t d = at % op.dim;
    const std::int64_t row_head = at / op.dim;
    const std::int64_t h = row_head % op.heads;
    const float rate = expf(op.a_log[h]);
    const float f = op.decay[at] + op.dt_bias[h * op.dim + d];
    const float g = op.lower_bound < 0 ? op.lower_bound * Sigmoid(rate * f) : -rate * Softplus(f);
    op.decay[at] = expf(g);
    if (d == 0) op.beta[row_head] = Sigmoid(op.beta[row_head]);
  }
}

}  // namespace

void ShortConv(const ShortConvOp& op, cudaStream_t stream) {
  const dim3 grid(BlocksFor(op.channels, kBlock), BlocksFor(op.requests, 1));
  KVASIR_LAUNCH(ShortConvKernel, grid, kBlock, 0, stream, op);
}
void KdaGate(const KdaGateOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(KdaGateKernel, BlocksFor(op.rows * op.heads * op.dim, kBlock), kBlock, 0, stream, op);
}

}  // namespace kvasir::cuda
