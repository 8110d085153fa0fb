#include "worker/cpu/recurrent.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/gated.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {
namespace {

// ln(1 + e^x), without overflow.
float Softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x))); }

// One request's rows, oldest first: each finds its predecessors in the history, whichever pass they ran in.
void ConvolveRequest(const ShortConvOp& op, std::int64_t request, std::vector<float>& taps) {
  const std::int64_t* table = op.block_table + request * op.table_width;
  const std::int64_t element = DTypeBytes(op.dtype);
  for (std::int64_t i = 0; i < op.query_rows; ++i) {
    const std::int64_t r = request * op.query_rows + i;
    float* x = op.x + r * op.row_stride;
    if (op.bounds[r] == 0) {
      std::fill(x, x + op.channels, 0.0F);
      continue;
    }
    std::byte* history = op.arena + StateOffset(op.state, table, 0) + op.history_begin * element;
    const auto row_of = [&](std::int64_t token) {
      return history + token % op.history * op.history_stride * element;
    };
    const std::int64_t position = op.bounds[r] - 1;
    const std::int64_t first = std::max<std::int64_t>(0, position - op.kernel + 1);
    for (std::int64_t c = 0; c < op.channels; ++c) x[c] = Rounded(x[c], op.dtype);
    for (std::int64_t p = first; p < position; ++p) {
      LoadRow(row_of(p), op.dtype, op.channels, taps.data() + (p - first) * op.channels);
    }
    std::copy(x, x + op.channels, taps.begin() + (position - first) * op.channels);
    StoreRow(x, op.dtype, op.channels, row_of(position));
    ConvolveRow(taps.data(), position - first + 1, op.weight, op.kernel, op.channels, x);
  }
}

}  // namespace

void ConvolveRow(const float* taps, std::int64_t count, const float* weight, std::int64_t kernel,
                 std::int64_t channels, float* out) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float* own = weight + c * kernel + (kernel - count);
    float sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += own[j] * taps[j * channels + c];
    out[c] = sum * Sigmoid(sum);
  }
}

void NormalizeHead(float* x, std::int64_t dim, float scale, float eps) {
  const float factor = scale / std::sqrt(DotLanes(x, x, dim) + eps);
  for (std::int64_t d = 0; d < dim; ++d) x[d] *= factor;
}

void ShortConv(const ShortConvOp& op) {
  std::vector<float> taps(static_cast<std::size_t>(op.kernel * op.channels));
  for (std::int64_t request = 0; request < op.requests; ++request) ConvolveRequest(op, request, taps);
}

void L2Norm(const L2NormOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    for (std::int64_t h = 0; h < op.heads; ++h) {
      NormalizeHead(op.x + r * op.row_stride + h * op.dim, op.dim, op.scale, op.eps);
    }
  }
}

void KdaGate(const KdaGateOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    for (std::int64_t h = 0; h < op.heads; ++h) {
      const float rate = std::exp(op.a_log[h]);
      float* decay = op.decay + (r * op.heads + h) * op.dim;
      for (std::int64_t d = 0; d < op.dim; ++d) {
        const float f = decay[d] + op.dt_bias[h * op.dim + d];
        const float g = op.lower_bound < 0 ? op.lower_bound * Sigmoid(rate * f) : -rate * Softplus(f);
        decay[d] = std::exp(g);
      }
      float& beta = op.beta[r * op.heads + h];
      beta = Sigmoid(beta);
    }
  }
}

}  // namespace kvasir::cpu
