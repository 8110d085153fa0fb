// Paged decode over keys and values per head (GqaDecodeOp in launch.h).
#include <algorithm>
#include <vector>

#include "worker/cpu/attend_split.h"
#include "worker/cpu/cache_row.h"
#include "worker/cpu/cpu_kernels.h"

namespace kvasir::cpu {
namespace {

SplitView ViewOf(const GqaDecodeOp& op, const SplitBuffers& buffers, std::int64_t head) {
  const std::int64_t kv_head = head / (op.heads / op.kv_heads);
  const float* tile = buffers.tile.data();
  return {.keys = tile + kv_head * op.key_dim,
          .values = tile + op.kv_heads * op.key_dim + kv_head * op.value_dim,
          .stride = op.kv_heads * (op.key_dim + op.value_dim),
          .key_dim = op.key_dim,
          .value_dim = op.value_dim,
          .scale = op.scale};
}

void DecodeRequest(const GqaDecodeOp& op, std::int64_t request, SplitBuffers& buffers,
                   std::vector<Running>& running) {
  const std::int64_t width = op.kv_heads * (op.key_dim + op.value_dim);
  const std::int64_t* table = op.block_table + request * op.table_width;
  const std::int64_t* bounds = op.bounds + request * op.query_rows;
  const std::int64_t first_head = request * op.query_rows * op.heads;
  const std::int64_t row_heads = op.query_rows * op.heads;
  float* out = op.out + first_head * op.value_dim;
  std::fill(out, out + row_heads * op.value_dim, 0.0F);
  std::fill(running.begin(), running.end(), Running{});
  const std::int64_t longest = *std::max_element(bounds, bounds + op.query_rows);
  for (std::int64_t begin = 0; begin < longest; begin += op.split_tokens) {
    const std::int64_t loaded = std::min(op.split_tokens, longest - begin);
    for (std::int64_t j = 0; j < loaded; ++j) {
      LoadRow(CacheRow(op.arena, op.page, table, begin + j), op.dtype, width,
              buffers.tile.data() + j * width);
    }
    for (std::int64_t index = 0; index < row_heads; ++index) {
      const std::int64_t keys = std::min(op.split_tokens, bounds[index / op.heads] - begin);
      if (keys <= 0) continue;
      AttendSplit(ViewOf(op, buffers, index % op.heads), op.q + (first_head + index) * op.key_dim, keys,
                  buffers, running[static_cast<std::size_t>(index)], out + index * op.value_dim);
    }
  }
  for (std::int64_t index = 0; index < row_heads; ++index) {
    if (bounds[index / op.heads] <= 0) continue;
    const float inverse = 1.0F / running[static_cast<std::size_t>(index)].sum;
    for (std::int64_t i = 0; i < op.value_dim; ++i) out[index * op.value_dim + i] *= inverse;
  }
}

}  // namespace

void GqaDecode(const GqaDecodeOp& op) {
  SplitBuffers buffers(op.split_tokens, op.kv_heads * (op.key_dim + op.value_dim), op.value_dim);
  std::vector<Running> running(static_cast<std::size_t>(op.query_rows * op.heads));
  for (std::int64_t b = 0; b < op.requests; ++b) DecodeRequest(op, b, buffers, running);
}

}  // namespace kvasir::cpu
