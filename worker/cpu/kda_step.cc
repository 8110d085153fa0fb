// Kimi Delta Attention's recurrence. A state is rows of keys by columns of values, so that every step is a
// sum of scaled rows, each column its own lane.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/lanes.h"
#include "worker/cpu/recurrent.h"

namespace kvasir::cpu {
namespace {

// One head of one request.
class Head {
 public:
  Head(const KdaStepOp& op, std::int64_t request, std::int64_t head)
      : op_(op),
        table_(op.block_table + request * op.table_width),
        request_(request),
        head_(head),
        size_(static_cast<std::size_t>(op.dim)),
        state_(size_ * size_),
        decay_(size_),
        key_(size_),
        update_(size_) {}

  void Run() {
    bool begun = false;
    for (std::int64_t i = 0; i < op_.query_rows; ++i) {
      const std::int64_t r = request_ * op_.query_rows + i;
      float* out = op_.out + (r * op_.heads + head_) * op_.dim;
      std::fill(out, out + op_.dim, 0.0F);
      if (op_.bounds[r] == 0) continue;
      if (!begun) Begin();
      begun = true;
      Step(r, out);
      if (op_.keeps_rows) Keep(i);
      if (op_.writes[r] >= 0) std::memcpy(StateAt(op_.writes[r]), state_.data(), StateBytes());
    }
  }

 private:
  [[nodiscard]] std::size_t StateBytes() const { return state_.size() * sizeof(float); }
  [[nodiscard]] std::byte* StateAt(std::int64_t copy) const {
    return op_.arena + StateOffset(op_.state, table_, copy) +
           head_ * op_.dim * op_.dim * static_cast<std::int64_t>(sizeof(float));
  }
  // This head's part of a ring row.
  [[nodiscard]] std::byte* DecayAt(std::int64_t row) const {
    return RingRow(op_.arena, op_.ring_decay, table_, row, op_.heads * op_.dim, DType::kF32) +
           head_ * op_.dim * DTypeBytes(DType::kF32);
  }
  [[nodiscard]] std::byte* UpdateAt(std::int64_t row, std::int64_t which) const {
    return RingRow(op_.arena, op_.ring_update, table_, 2 * row + which, op_.heads * op_.dim, op_.dtype) +
           head_ * op_.dim * DTypeBytes(op_.dtype);
  }

  void Begin() {
    const std::int64_t copy = op_.reads[request_];
    if (copy >= 0) std::memcpy(state_.data(), StateAt(copy), StateBytes());
    const std::int64_t replays = op_.replays[request_];
    for (std::int64_t row = 0; row < replays; ++row) {
      LoadRow(DecayAt(row), DType::kF32, op_.dim, decay_.data());
      LoadRow(UpdateAt(row, 0), op_.dtype, op_.dim, key_.data());
      LoadRow(UpdateAt(row, 1), op_.dtype, op_.dim, update_.data());
      Decay();
      Update();
    }
    if (replays > 0) std::memcpy(StateAt(0), state_.data(), StateBytes());
  }

  void Keep(std::int64_t row) const {
    StoreRow(decay_.data(), DType::kF32, op_.dim, DecayAt(row));
    StoreRow(key_.data(), op_.dtype, op_.dim, UpdateAt(row, 0));
    StoreRow(update_.data(), op_.dtype, op_.dim, UpdateAt(row, 1));
  }

  void Decay() {
    for (std::size_t d = 0; d < size_; ++d) {
      for (std::size_t e = 0; e < size_; ++e) state_[d * size_ + e] *= decay_[d];
    }
  }
  void Update() {
    for (std::size_t d = 0; d < size_; ++d) {
      AddScaled(state_.data() + d * size_, update_.data(), key_[d], op_.dim);
    }
  }
  // out += S^T x
  void Read(const float* x, float* out) const {
    for (std::size_t d = 0; d < size_; ++d) AddScaled(out, state_.data() + d * size_, x[d], op_.dim);
  }

  void Step(std::int64_t r, float* out) {
    const std::int64_t at = r * op_.row_stride + head_ * op_.dim;
    const std::int64_t index = r * op_.heads + head_;
    std::copy_n(op_.decay + index * op_.dim, op_.dim, decay_.begin());
    for (std::size_t d = 0; d < size_; ++d) {
      key_[d] = Rounded(op_.k[at + static_cast<std::int64_t>(d)], op_.dtype);
    }
    Decay();
    std::fill(update_.begin(), update_.end(), 0.0F);
    Read(key_.data(), update_.data());
    for (std::size_t e = 0; e < size_; ++e) {
      const float error = op_.v[at + static_cast<std::int64_t>(e)] - update_[e];
      update_[e] = Rounded(op_.beta[index] * error, op_.dtype);
    }
    Update();
    Read(op_.q + at, out);
    const bool finite = std::all_of(out, out + op_.dim, [](float x) { return std::isfinite(x); });
    if (!finite) *op_.fault = 1;
  }

  const KdaStepOp& op_;
  const std::int64_t* table_;
  std::int64_t request_, head_;
  std::size_t size_;
  std::vector<float> state_, decay_, key_, update_;
};

}  // namespace

void KdaStep(const KdaStepOp& op) {
  for (std::int64_t request = 0; request < op.requests; ++request) {
    for (std::int64_t head = 0; head < op.heads; ++head) Head(op, request, head).Run();
  }
}

}  // namespace kvasir::cpu
