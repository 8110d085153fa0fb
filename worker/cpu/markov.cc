// Choice of tokens: argmax, and DSpark's Markov chain, the only sequential part of a drafted block.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "absl/strings/str_format.h"
#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/lanes.h"
#include "worker/engine/token_distribution.h"

namespace kvasir::cpu {
namespace {

// The lowest index of the largest element; a NaN anywhere, or a largest one that is infinite, sets *fault and
// gives 0.
std::int32_t LargestIndex(const float* logits, std::int64_t count, std::int32_t* fault) {
  std::int64_t best = 0;
  bool nan = std::isnan(logits[0]);
  for (std::int64_t i = 1; i < count; ++i) {
    nan = nan || std::isnan(logits[i]);
    if (logits[i] > logits[best]) best = i;
  }
  if (nan || std::isinf(logits[best])) {
    *fault = 1;
    return 0;
  }
  return static_cast<std::int32_t>(best);
}

// logits = base + w1 * w2, w1 [rank] of the token before.
void AddBias(const MarkovChainOp& op, const float* base, const float* w1, float* logits) {
  std::fill(logits, logits + op.vocab, 0.0F);
  for (std::int64_t j = 0; j < op.rank; ++j) AddScaled(logits, op.w2 + j * op.vocab, w1[j], op.vocab);
  for (std::int64_t n = 0; n < op.vocab; ++n) logits[n] = base[n] + logits[n];
}

std::int32_t Draft(const MarkovChainOp& op, std::int64_t request, std::int64_t row) {
  const float* logits = op.logits + row * op.vocab;
  const double temperature = op.temperatures != nullptr ? op.temperatures[request] : 0;
  if (temperature == 0) return LargestIndex(logits, op.vocab, op.fault);
  const auto distribution =
      MakeDistribution(std::span(logits, static_cast<std::size_t>(op.vocab)), {.temperature = temperature});
  if (distribution.has_value()) return SampleToken(*distribution, op.draws[row]);
  *op.fault = 1;
  return 0;
}

}  // namespace

void Argmax(const ArgmaxOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    op.ids[r] = LargestIndex(op.logits + r * op.vocab, op.vocab, op.fault);
  }
}

absl::Status MarkovChain(const MarkovChainOp& op) {
  for (std::int64_t b = 0; b < op.requests; ++b) {
    std::int64_t token = op.anchors[b];
    if (token < 0 || token >= op.vocab) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "anchor token id %d of request %d is outside the vocabulary of %d tokens", token, b, op.vocab));
    }
    for (std::int64_t k = 0; k < op.query_rows; ++k) {
      const std::int64_t row = b * op.query_rows + k;
      if (op.rank > 0) {
        AddBias(op, op.base + row * op.vocab, op.w1 + token * op.rank, op.logits + row * op.vocab);
      }
      op.drafted[row] = Draft(op, b, row);
      token = op.drafted[row];
    }
  }
  return absl::OkStatus();
}

}  // namespace kvasir::cpu
