// Matrix products, a dot product per output. A block makes kOutputs outputs of one row: kLanes threads share
// each, lane l taking the elements l, l + kLanes, ... in ascending order; lanes are added in ascending order.
#include "worker/cuda/dot.cuh"
#include "worker/cuda/kernels.h"

namespace kvasir::cuda {
namespace {

// grid: (outputs, rows)
__global__ void LinearKernel(LinearOp op) {
  const std::int64_t n = FirstOutput() + OutputOfThread();
  const float* in = op.in + blockIdx.y * op.in_stride;
  const float* weight = n < op.out_dim ? op.weight + n * op.in_dim : nullptr;
  const float sum = DotOfOutput(in, weight, op.in_dim);
  if (weight != nullptr && LaneOfThread() == 0) op.out[blockIdx.y * op.out_stride + n] = sum;
}

// grid: (values, rows * heads)
__global__ void ProjectValueKernel(ProjectValueOp op) {
  const std::int64_t v = FirstOutput() + OutputOfThread();
  const std::int64_t head = blockIdx.y % op.heads;
  const float* in = op.in + blockIdx.y * op.latent;
  const float* weight = v < op.value ? op.w_uv + (head * op.value + v) * op.latent : nullptr;
  const float sum = DotOfOutput(in, weight, op.latent);
  if (weight != nullptr && LaneOfThread() == 0) op.out[blockIdx.y * op.value + v] = sum;
}

// A thread per element of the absorbed query: neighbours read neighbouring weights. grid: (elements, rows *
// heads)
__global__ void AbsorbQueryKernel(AbsorbQueryOp op) {
  const std::int64_t i = GridThread();
  if (i >= op.latent + op.rope) return;
  const std::int64_t head = blockIdx.y % op.heads;
  const float* q = op.q + blockIdx.y * (op.nope + op.rope);
  float value = 0;
  if (i < op.latent) {
    const float* weight = op.w_uk + head * op.nope * op.latent + i;
    for (std::int64_t k = 0; k < op.nope; ++k) value += q[k] * weight[k * op.latent];
  } else {
    value = q[op.nope + i - op.latent];
  }
  op.out[blockIdx.y * (op.latent + op.rope) + i] = value;
}

}  // namespace

void Linear(const LinearOp& op, cudaStream_t stream) {
  const dim3 grid(BlocksFor(op.out_dim, kOutputs), BlocksFor(op.rows, 1));
  KVASIR_LAUNCH(LinearKernel, grid, kBlock, 0, stream, op);
}
void ProjectValue(const ProjectValueOp& op, cudaStream_t stream) {
  const dim3 grid(BlocksFor(op.value, kOutputs), BlocksFor(op.rows * op.heads, 1));
  KVASIR_LAUNCH(ProjectValueKernel, grid, kBlock, 0, stream, op);
}
void AbsorbQuery(const AbsorbQueryOp& op, cudaStream_t stream) {
  const dim3 grid(BlocksFor(op.latent + op.rope, kBlock), BlocksFor(op.rows * op.heads, 1));
  KVASIR_LAUNCH(AbsorbQueryKernel, grid, kBlock, 0, stream, op);
}

}  // namespace kvasir::cuda
