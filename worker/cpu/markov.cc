// Choice of tokens: argmax, and DSpark's Markov chain, the only sequential part of a drafted block.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_format.h"
#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/gated.h"
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

// out[i] = weight[i] * [parts] + bias[i]; the parts are summed each by itself, in their order.
void Project(const float* weight, const float* bias, std::int64_t rows,
             std::initializer_list<std::span<const float>> parts, float* out) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float sum = bias[i];
    for (const std::span<const float> part : parts) {
      const auto size = static_cast<std::int64_t>(part.size());
      sum += DotLanes(weight, part.data(), size);
      weight += size;
    }
    out[i] = sum;
  }
}

// The Markov head of one block: what it makes of the tokens so far.
class Head {
 public:
  explicit Head(const MarkovChainOp& op)
      : op_(op), rank_(static_cast<std::size_t>(op.rank)), state_(rank_), mixed_(3 * rank_), m_(rank_) {}

  // m of the token `e` before and the hidden state `h`.
  std::span<const float> Next(std::span<const float> e, std::span<const float> h) {
    if (op_.head == MarkovHead::kVanilla) return e;
    if (op_.head == MarkovHead::kGated) {
      Project(op_.mix, op_.mix_bias, op_.rank, {h, e}, mixed_.data());
      for (std::size_t j = 0; j < rank_; ++j) m_[j] = Sigmoid(mixed_[j]) * e[j];
      return m_;
    }
    Project(op_.mix, op_.mix_bias, 3 * op_.rank, {state_, e, h}, mixed_.data());
    for (std::size_t j = 0; j < rank_; ++j) {
      const float gate = Sigmoid(mixed_[j]);
      state_[j] = gate * state_[j] + (1.0F - gate) * std::tanh(mixed_[rank_ + j]);
      m_[j] = std::tanh(mixed_[2 * rank_ + j]);
    }
    return m_;
  }

 private:
  const MarkovChainOp& op_;
  const std::size_t rank_;
  std::vector<float> state_;
  std::vector<float> mixed_;
  std::vector<float> m_;
};

// logits = base + m * w2
void AddBias(const MarkovChainOp& op, const float* base, std::span<const float> m, float* logits) {
  std::fill(logits, logits + op.vocab, 0.0F);
  for (std::int64_t j = 0; j < op.rank; ++j) {
    AddScaled(logits, op.w2 + j * op.vocab, m[static_cast<std::size_t>(j)], op.vocab);
  }
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
    Head head(op);
    for (std::int64_t k = 0; k < op.query_rows; ++k) {
      const std::int64_t row = b * op.query_rows + k;
      const std::span<const float> e(op.w1 + token * op.rank, static_cast<std::size_t>(op.rank));
      const std::span<const float> h(op.hidden + row * op.hidden_dim,
                                     static_cast<std::size_t>(op.hidden_dim));
      if (op.rank > 0) AddBias(op, op.base + row * op.vocab, head.Next(e, h), op.logits + row * op.vocab);
      if (op.confidence != nullptr) {
        float raw = 0;
        Project(op.confidence, op.confidence_bias, 1, {h, op.confidence_markov ? e : e.first(0)}, &raw);
        if (!std::isfinite(raw)) *op.fault = 1;  // weights that are no numbers; drafting would silently stop
        op.confidences[row] = Sigmoid(raw);
      }
      op.drafted[row] = Draft(op, b, row);
      token = op.drafted[row];
    }
  }
  return absl::OkStatus();
}

}  // namespace kvasir::cpu
