// Paged attention over splits of the context, in two kernels: a block per split and a few (row, head) pairs
// keeps the softmax of its split (decode_threads.cu, decode_mma.cu); then a block per (row, head) merges the
// splits in ascending order. Both multiples, of the split and of the tile inside it, are fixed, so that a
// row's bits depend on its own keys alone.
#include "worker/cuda/decode.cuh"
#include "worker/cuda/kernels.h"

namespace kvasir::cuda {
namespace {

constexpr int kDims = kDecodeValueDimMost / kBlock;  // value elements of a thread

// grid: (rows * heads)
__global__ void MergeKernel(Paged op) {
  const std::int64_t row_head = blockIdx.x;
  const std::int64_t bound = op.bounds[row_head / op.heads];
  float out[kDims] = {};
  float largest = -INFINITY;
  float sum = 0;
  for (std::int64_t split = 0; split * op.split_tokens < bound; ++split) {
    const float part_largest = op.scratch.LargestOf(split, row_head);
    const float merged = fmaxf(largest, part_largest);
    const float keep = expf(largest - merged);
    const float add = expf(part_largest - merged);
    for (int d = 0; d < kDims; ++d) {
      const std::int64_t v = static_cast<int>(threadIdx.x) + d * kBlock;
      if (v < op.value_dim) out[d] = out[d] * keep + op.scratch.OutOf(split, row_head)[v] * add;
    }
    sum = sum * keep + op.scratch.SumOf(split, row_head) * add;
    largest = merged;
  }
  const float inverse = bound > 0 ? 1.0F / sum : 0;
  for (int d = 0; d < kDims; ++d) {
    const std::int64_t v = static_cast<int>(threadIdx.x) + d * kBlock;
    if (v < op.value_dim) op.out[row_head * op.value_dim + v] = bound > 0 ? out[d] * inverse : 0;
  }
  if (op.lse != nullptr && threadIdx.x == 0) op.lse[row_head] = bound > 0 ? largest + logf(sum) : -INFINITY;
}

void Decode(const Paged& op, DecodeKernelId kernel, cudaStream_t stream) {
  switch (kernel) {
    case DecodeKernelId::kThreads:
      SplitByThreads(op, stream);
      break;
    case DecodeKernelId::kMma:
      SplitByMma(op, stream);
      break;
  }
  KVASIR_LAUNCH(MergeKernel, BlocksFor(op.requests * op.query_rows * op.heads, 1), kBlock, 0, stream, op);
}

}  // namespace

void MlaDecode(const MlaDecodeOp& op, DecodeKernelId kernel, float* scratch, cudaStream_t stream) {
  Paged paged = {};
  paged.q = op.q;
  paged.arena = op.arena;
  paged.page = op.page;
  paged.dtype = op.dtype;
  paged.block_table = op.block_table;
  paged.bounds = op.bounds;
  paged.out = op.out;
  paged.lse = op.lse;
  paged.scratch = DecodeScratchOf(op, scratch);
  paged.requests = op.requests;
  paged.query_rows = op.query_rows;
  paged.heads = op.heads;
  paged.kv_heads = 1;
  paged.key_dim = op.latent + op.rope;
  paged.value_dim = op.latent;
  paged.table_width = op.table_width;
  paged.split_tokens = op.split_tokens;
  paged.values_in_keys = true;
  paged.scale = op.scale;
  Decode(paged, kernel, stream);
}

void GqaDecode(const GqaDecodeOp& op, DecodeKernelId kernel, float* scratch, cudaStream_t stream) {
  Paged paged = {};
  paged.q = op.q;
  paged.arena = op.arena;
  paged.page = op.page;
  paged.dtype = op.dtype;
  paged.block_table = op.block_table;
  paged.bounds = op.bounds;
  paged.out = op.out;
  paged.scratch = DecodeScratchOf(op, scratch);
  paged.requests = op.requests;
  paged.query_rows = op.query_rows;
  paged.heads = op.heads;
  paged.kv_heads = op.kv_heads;
  paged.key_dim = op.key_dim;
  paged.value_dim = op.value_dim;
  paged.key_step = op.key_dim;
  paged.value_begin = op.kv_heads * op.key_dim;
  paged.value_step = op.value_dim;
  paged.table_width = op.table_width;
  paged.split_tokens = op.split_tokens;
  paged.scale = op.scale;
  Decode(paged, kernel, stream);
}

}  // namespace kvasir::cuda
