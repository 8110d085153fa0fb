// A block per row (or per head of a row): its threads take elements in strides, and sum in a fixed tree.
#include "worker/cuda/element.cuh"
#include "worker/cuda/kernels.h"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

// sum_i a[i] * b[i] over the block.
__device__ float BlockDot(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kBlock) sum += a[i] * b[i];
  return BlockSum(sum);
}

__global__ void RmsNormKernel(RmsNormOp op) {
  const float* in = op.in + blockIdx.x * op.in_stride;
  float* out = op.out + blockIdx.x * op.out_stride;
  const float mean = BlockDot(in, in, op.cols) / static_cast<float>(op.cols);
  const float inverse = 1.0F / sqrtf(mean + op.eps);
  for (std::int64_t i = threadIdx.x; i < op.cols; i += kBlock) out[i] = in[i] * inverse * op.weight[i];
}

__global__ void L2NormKernel(L2NormOp op) {
  float* x = op.x + blockIdx.x / op.heads * op.row_stride + blockIdx.x % op.heads * op.dim;
  const float factor = op.scale / sqrtf(BlockDot(x, x, op.dim) + op.eps);
  for (std::int64_t i = threadIdx.x; i < op.dim; i += kBlock) x[i] *= factor;
}

// A thread per pair of lanes of a row, for all heads. The angle in double: at position 10^6 a float angle
// would be off by a few hundredths of a radian.
__global__ void RopeKernel(RopeOp op) {
  const std::int64_t half = op.dim / 2;
  for (std::int64_t at = GridThread(); at < op.rows * half; at += GridThreads()) {
    const std::int64_t row = at / half;
    const std::int64_t i = at % half;
    const double angle = static_cast<double>(op.positions[row]) * static_cast<double>(op.inv_freq[i]);
    const float cosine = static_cast<float>(cos(angle)) * op.magnitude;
    const float sine = static_cast<float>(sin(angle)) * op.magnitude;
    for (std::int64_t h = 0; h < op.heads; ++h) {
      float* head = op.x + row * op.row_stride + h * op.head_stride;
      float& first = head[op.halves ? i : 2 * i];
      float& second = head[op.halves ? i + half : 2 * i + 1];
      const float x = first;
      const float y = second;
      first = x * cosine - y * sine;
      second = x * sine + y * cosine;
    }
  }
}

[[nodiscard]] __device__ const float* SourceOf(const MixResidualsOp& op, std::int64_t s) {
  const float* from = s == op.count ? op.x : op.blocks + s * op.rows * op.cols;
  return from + blockIdx.x * op.cols;
}

// The scores of all sources stand in shared memory, [count + 1].
__global__ void MixResidualsKernel(MixResidualsOp op) {
  KVASIR_DYNAMIC_SHARED(float, score);
  for (std::int64_t s = 0; s <= op.count; ++s) {
    const float* source = SourceOf(op, s);
    float weighted = 0;
    for (std::int64_t i = threadIdx.x; i < op.cols; i += kBlock)
      weighted += source[i] * (op.norm[i] * op.proj[i]);
    const float mean = BlockDot(source, source, op.cols) / static_cast<float>(op.cols);
    const float sum = BlockSum(weighted);
    if (threadIdx.x == 0) score[s] = sum / sqrtf(mean + op.eps);
  }
  __syncthreads();
  float largest = score[0];
  for (std::int64_t s = 1; s <= op.count; ++s) largest = fmaxf(largest, score[s]);
  float sum = 0;
  for (std::int64_t s = 0; s <= op.count; ++s) sum += expf(score[s] - largest);
  float* out = op.out + blockIdx.x * op.cols;
  for (std::int64_t i = threadIdx.x; i < op.cols; i += kBlock) {
    float mixed = 0;
    for (std::int64_t s = 0; s <= op.count; ++s) mixed += expf(score[s] - largest) / sum * SourceOf(op, s)[i];
    out[i] = mixed;
  }
}

}  // namespace

void RmsNorm(const RmsNormOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(RmsNormKernel, BlocksFor(op.rows, 1), kBlock, 0, stream, op);
}
void L2Norm(const L2NormOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(L2NormKernel, BlocksFor(op.rows * op.heads, 1), kBlock, 0, stream, op);
}
void Rope(const RopeOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(RopeKernel, BlocksFor(op.rows * (op.dim / 2), kBlock), kBlock, 0, stream, op);
}
void MixResiduals(const MixResidualsOp& op, cudaStream_t stream) {
  const auto shared = static_cast<std::size_t>(FloatsBytes(op.count + 1));
  KVASIR_LAUNCH(MixResidualsKernel, BlocksFor(op.rows, 1), kBlock, shared, stream, op);
}

}  // namespace kvasir::cuda
