// One head's recurrent state of Kimi Delta Attention: rows of keys by columns of values, so that every step
// is a sum of scaled rows, each column its own lane.
#ifndef KVASIR_WORKER_CPU_KDA_STATE_H_
#define KVASIR_WORKER_CPU_KDA_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "worker/cpu/lanes.h"
#include "worker/cpu/recurrent.h"

namespace kvasir::cpu {

class KdaState {
 public:
  // Keys and updates are rounded to `dtype` when they are taken in.
  KdaState(std::int64_t dim, DType dtype)
      : dtype_(dtype),
        size_(static_cast<std::size_t>(dim)),
        state_(size_ * size_),
        key_(size_),
        update_(size_) {}

  void Load(const std::byte* from) { std::memcpy(state_.data(), from, Bytes()); }
  void Store(std::byte* to) const { std::memcpy(to, state_.data(), Bytes()); }

  // S = diag(decay) S;  S = S + k (beta (v - S^T k))^T
  void TakeIn(const float* decay, const float* k, const float* v, float beta) {
    for (std::size_t d = 0; d < size_; ++d) {
      for (std::size_t e = 0; e < size_; ++e) state_[d * size_ + e] *= decay[d];
    }
    for (std::size_t d = 0; d < size_; ++d) key_[d] = Rounded(k[d], dtype_);
    std::fill(update_.begin(), update_.end(), 0.0F);
    AddRead(key_.data(), update_.data());
    for (std::size_t e = 0; e < size_; ++e) update_[e] = Rounded(beta * (v[e] - update_[e]), dtype_);
    for (std::size_t d = 0; d < size_; ++d) {
      AddScaled(state_.data() + d * size_, update_.data(), key_[d], static_cast<std::int64_t>(size_));
    }
  }

  // out += S^T x
  void AddRead(const float* x, float* out) const {
    for (std::size_t d = 0; d < size_; ++d)
      AddScaled(out, state_.data() + d * size_, x[d], static_cast<std::int64_t>(size_));
  }

 private:
  [[nodiscard]] std::size_t Bytes() const { return state_.size() * sizeof(float); }

  DType dtype_;
  std::size_t size_;
  std::vector<float> state_, key_, update_;
};

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_KDA_STATE_H_
