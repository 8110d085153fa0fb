#include "worker/cpu/reference_decode.h"

#include <cmath>
#include <limits>
#include <vector>

#include "worker/cpu/cache_row.h"

namespace kvasir::cpu {
namespace {

// One head of one row. `table` is the block table of the row's request.
void DecodeHead(const MlaDecodeOp& op, const std::int64_t* table, std::int64_t bound, std::int64_t index) {
  const std::int64_t width = op.latent + op.rope;
  const float* q = op.q + index * width;
  std::vector<float> key(static_cast<std::size_t>(width));
  std::vector<double> scores(static_cast<std::size_t>(bound));
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t k = 0; k < bound; ++k) {
    LoadRow(CacheRow(op.arena, op.page, table, k), op.dtype, width, key.data());
    double dot = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      dot += static_cast<double>(q[i]) * static_cast<double>(key[static_cast<std::size_t>(i)]);
    }
    const double score = dot * static_cast<double>(op.scale);
    scores[static_cast<std::size_t>(k)] = score;
    if (score > largest) largest = score;
  }
  double sum = 0;
  std::vector<double> out(static_cast<std::size_t>(op.latent), 0.0);
  for (std::int64_t k = 0; k < bound; ++k) {
    LoadRow(CacheRow(op.arena, op.page, table, k), op.dtype, width, key.data());
    const double weight = std::exp(scores[static_cast<std::size_t>(k)] - largest);
    sum += weight;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * static_cast<double>(key[i]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    op.out[index * op.latent + static_cast<std::int64_t>(i)] =
        bound > 0 ? static_cast<float>(out[i] / sum) : 0;
  }
  op.lse[index] =
      bound > 0 ? static_cast<float>(largest + std::log(sum)) : -std::numeric_limits<float>::infinity();
}

}  // namespace

void ReferenceDecode(const MlaDecodeOp& op) {
  for (std::int64_t r = 0; r < op.requests * op.query_rows; ++r) {
    const std::int64_t* table = op.block_table + (r / op.query_rows) * op.table_width;
    const std::int64_t bound = op.bounds[r] > 0 ? op.bounds[r] : 0;
    for (std::int64_t h = 0; h < op.heads; ++h) DecodeHead(op, table, bound, r * op.heads + h);
  }
}

}  // namespace kvasir::cpu
