// Kimi Delta Attention's recurrence over a pass's own rows.
#include <algorithm>
#include <cmath>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/kda_state.h"
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
        state_(op.dim, op.dtype) {}

  void Run() {
    bool begun = false;
    for (std::int64_t i = 0; i < op_.query_rows; ++i) {
      const std::int64_t r = request_ * op_.query_rows + i;
      float* out = op_.out + (r * op_.heads + head_) * op_.dim;
      std::fill(out, out + op_.dim, 0.0F);
      if (op_.bounds[r] == 0) continue;
      if (!begun && op_.reads[request_] >= 0) state_.Load(StateAt(op_.reads[request_]));
      begun = true;
      Step(r, out);
      if (op_.keeps_rows && i > 0) Keep(r, i - 1);
      if (op_.writes[r] >= 0) state_.Store(StateAt(op_.writes[r]));
    }
  }

 private:
  [[nodiscard]] std::byte* StateAt(std::int64_t copy) const {
    return op_.arena + StateOffset(op_.state, table_, copy) +
           head_ * op_.dim * op_.dim * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] const float* DecayOf(std::int64_t r) const {
    return op_.decay + (r * op_.heads + head_) * op_.dim;
  }
  [[nodiscard]] const float& BetaOf(std::int64_t r) const { return op_.beta[r * op_.heads + head_]; }

  void Keep(std::int64_t r, std::int64_t row) const {
    StoreRow(DecayOf(r), DType::kF32, op_.dim,
             RingPart({op_.arena, op_.ring_decay, table_, op_.heads, op_.dim}, row, head_));
    StoreRow(&BetaOf(r), DType::kF32, 1,
             RingPart({op_.arena, op_.ring_beta, table_, op_.heads, 1}, row, head_));
  }

  void Step(std::int64_t r, float* out) {
    const std::int64_t at = r * op_.row_stride + head_ * op_.dim;
    state_.TakeIn(DecayOf(r), op_.k + at, op_.v + at, BetaOf(r));
    state_.AddRead(op_.q + at, out);
    const bool finite = std::all_of(out, out + op_.dim, [](float x) { return std::isfinite(x); });
    if (!finite) *op_.fault = 1;
  }

  const KdaStepOp& op_;
  const std::int64_t* table_;
  std::int64_t request_, head_;
  KdaState state_;
};

}  // namespace

void KdaStep(const KdaStepOp& op) {
  for (std::int64_t request = 0; request < op.requests; ++request) {
    for (std::int64_t head = 0; head < op.heads; ++head) Head(op, request, head).Run();
  }
}

}  // namespace kvasir::cpu
