// What the kernels of paged attention share: the operation, and a block's part of it.
#ifndef KVASIR_WORKER_CUDA_DECODE_CUH_
#define KVASIR_WORKER_CUDA_DECODE_CUH_

#include "common/geometry/block_address.h"
#include "worker/cuda/element.cuh"
#include "worker/cuda/workspace.h"
#include "worker/engine/launch.h"

namespace kvasir::cuda {

// What both operations are: MLA has one kv head, whose values are the front of its keys.
struct Paged {
  const float* q;  // [rows, heads, key_dim]
  const std::byte* arena;
  PageGeometry page;
  DType dtype;
  const std::int64_t* block_table;  // [requests, table_width]
  const std::int64_t* bounds;       // [rows]
  float* out;                       // [rows, heads, value_dim]
  float* lse;                       // [rows, heads]; null: not wanted
  DecodeScratch scratch;
  std::int64_t requests, query_rows, heads, kv_heads, key_dim, value_dim;
  std::int64_t key_step, value_begin, value_step, table_width, split_tokens;
  bool values_in_keys;
  float scale;

  [[nodiscard]] __device__ std::int64_t ItemsOfKvHead() const { return query_rows * (heads / kv_heads); }
};

// One block's part of the work.
struct Part {
  std::int64_t request, split, kv_head, first_item, items;

  // Item i as row and head of the whole operation.
  [[nodiscard]] __device__ std::int64_t RowOf(const Paged& op, std::int64_t i) const {
    return request * op.query_rows + (first_item + i) / (op.heads / op.kv_heads);
  }
  [[nodiscard]] __device__ std::int64_t RowHeadOf(const Paged& op, std::int64_t i) const {
    const std::int64_t group = op.heads / op.kv_heads;
    return RowOf(op, i) * op.heads + kv_head * group + (first_item + i) % group;
  }
};

// `items` of them at most; of the grid (splits, requests, kv heads * parts of their items).
[[nodiscard]] __device__ inline Part PartOf(const Paged& op, int items) {
  const std::int64_t all = op.ItemsOfKvHead();
  const std::int64_t parts = (all + items - 1) / items;
  Part part;
  part.split = blockIdx.x;
  part.request = blockIdx.y;
  part.kv_head = blockIdx.z / parts;
  part.first_item = blockIdx.z % parts * items;
  part.items = all - part.first_item < items ? all - part.first_item : items;
  return part;
}

[[nodiscard]] __device__ inline std::int64_t LongestBound(const Paged& op, const Part& part) {
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < part.items; ++i) {
    const std::int64_t bound = op.bounds[part.RowOf(op, i)];
    if (bound > longest) longest = bound;
  }
  return longest;
}

// Keys of the tile that item i sees.
[[nodiscard]] __device__ inline std::int64_t VisibleTo(const Paged& op, const Part& part, std::int64_t i,
                                                       std::int64_t begin, std::int64_t count) {
  if (i >= part.items) return 0;
  const std::int64_t left = op.bounds[part.RowOf(op, i)] - begin;
  return left < 0 ? 0 : left < count ? left : count;
}

// Where the request's token number `token` (of this rank's) lies.
[[nodiscard]] __device__ inline const std::byte* CacheRow(const Paged& op, const Part& part,
                                                          std::int64_t token) {
  const std::int64_t block = op.block_table[part.request * op.table_width + token / op.page.block_tokens];
  return op.arena + SlotOffset(op.page, SlotOf(op.page, block, token % op.page.block_tokens));
}

[[nodiscard]] inline dim3 SplitGrid(const Paged& op, std::int64_t items) {
  const std::int64_t parts = op.kv_heads * BlocksFor(op.query_rows * (op.heads / op.kv_heads), items);
  return dim3(BlocksFor(op.scratch.splits, 1), BlocksFor(op.requests, 1), BlocksFor(parts, 1));
}

// decode_threads.cu: any shape of the table.
void SplitByThreads(const Paged& op, cudaStream_t stream);
// decode_mma.cu: bf16 rows whose values stand in their keys.
void SplitByMma(const Paged& op, cudaStream_t stream);

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_DECODE_CUH_
