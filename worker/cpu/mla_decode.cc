#include "worker/cpu/mla_decode.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/cpu/attend_split.h"
#include "worker/cpu/cache_row.h"

namespace kvasir::cpu {
namespace {

void DecodeRequest(const MlaDecodeOp& op, std::int64_t request, SplitBuffers& buffers,
                   std::vector<Running>& running) {
  const std::int64_t width = op.latent + op.rope;
  const std::int64_t* table = op.block_table + request * op.table_width;
  const std::int64_t* bounds = op.bounds + request * op.query_rows;
  const std::int64_t first_head = request * op.query_rows * op.heads;
  const std::int64_t row_heads = op.query_rows * op.heads;
  float* out = op.out + first_head * op.latent;
  std::fill(out, out + row_heads * op.latent, 0.0F);
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
      if (keys <= 0) continue;  // no visible key in this split: nothing is added, not even a zero
      const SplitView view{buffers.tile.data(), buffers.tile.data(), width, width, op.latent, op.scale};
      AttendSplit(view, op.q + (first_head + index) * width, keys, buffers,
                  running[static_cast<std::size_t>(index)], out + index * op.latent);
    }
  }
  for (std::int64_t index = 0; index < row_heads; ++index) {
    const Running& state = running[static_cast<std::size_t>(index)];
    if (bounds[index / op.heads] <= 0) {
      op.lse[first_head + index] = kNoKeys;
      continue;
    }
    const float inverse = 1.0F / state.sum;
    for (std::int64_t i = 0; i < op.latent; ++i) out[index * op.latent + i] *= inverse;
    op.lse[first_head + index] = state.largest + std::log(state.sum);
  }
}

}  // namespace

void MlaDecode(const MlaDecodeOp& op) {
  SplitBuffers buffers(op.split_tokens, op.latent + op.rope, op.latent);
  std::vector<Running> running(static_cast<std::size_t>(op.query_rows * op.heads));
  for (std::int64_t b = 0; b < op.requests; ++b) DecodeRequest(op, b, buffers, running);
}

}  // namespace kvasir::cpu
