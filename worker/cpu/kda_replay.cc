// The accepted rows of an earlier pass, taken into the state: keys and values are made again as the pass made
// them, from the inputs that the convolutions' history still has.
#include <algorithm>
#include <vector>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/kda_state.h"
#include "worker/cpu/recurrent.h"

namespace kvasir::cpu {
namespace {

// One head of one request.
class Head {
 public:
  Head(const KdaReplayOp& op, std::int64_t request, std::int64_t head)
      : op_(op),
        table_(op.block_table + request * op.table_width),
        head_(head),
        state_(op.dim, op.dtype),
        taps_(static_cast<std::size_t>(op.kernel * op.dim)),
        decay_(static_cast<std::size_t>(op.dim)),
        key_(static_cast<std::size_t>(op.dim)),
        value_(static_cast<std::size_t>(op.dim)) {}

  // `first`: the position of ring row 0.
  void Run(std::int64_t first, std::int64_t rows, bool reads) {
    std::byte* state = op_.arena + StateOffset(op_.state, table_, 0) +
                       head_ * op_.dim * op_.dim * static_cast<std::int64_t>(sizeof(float));
    if (reads) state_.Load(state);
    for (std::int64_t row = 0; row < rows; ++row) TakeIn(row, first + row);
    state_.Store(state);
  }

 private:
  void TakeIn(std::int64_t row, std::int64_t position) {
    Convolve(op_.k_weight, op_.k_begin, position, key_.data());
    NormalizeHead(key_.data(), op_.dim, 1.0F, op_.eps);
    Convolve(op_.v_weight, op_.v_begin, position, value_.data());
    LoadRow(RingPart({op_.arena, op_.ring_decay, table_, op_.heads, op_.dim}, row, head_), DType::kF32,
            op_.dim, decay_.data());
    float beta = 0;
    LoadRow(RingPart({op_.arena, op_.ring_beta, table_, op_.heads, 1}, row, head_), DType::kF32, 1, &beta);
    state_.TakeIn(decay_.data(), key_.data(), value_.data(), beta);
  }

  void Convolve(const float* weight, std::int64_t begin, std::int64_t position, float* out) {
    const std::int64_t element = DTypeBytes(op_.dtype);
    const std::byte* history =
        op_.arena + StateOffset(op_.conv, table_, 0) + (begin + head_ * op_.dim) * element;
    const std::int64_t oldest = std::max<std::int64_t>(0, position - op_.kernel + 1);
    for (std::int64_t p = oldest; p <= position; ++p) {
      LoadRow(history + p % op_.history * op_.history_stride * element, op_.dtype, op_.dim,
              taps_.data() + (p - oldest) * op_.dim);
    }
    ConvolveRow(taps_.data(), position - oldest + 1, weight + head_ * op_.dim * op_.kernel, op_.kernel,
                op_.dim, out);
  }

  const KdaReplayOp& op_;
  const std::int64_t* table_;
  std::int64_t head_;
  KdaState state_;
  std::vector<float> taps_, decay_, key_, value_;
};

}  // namespace

void KdaReplay(const KdaReplayOp& op) {
  for (std::int64_t request = 0; request < op.requests; ++request) {
    const std::int64_t rows = op.replays[request];
    const std::int64_t bound = op.bounds[request * op.query_rows];
    if (rows == 0 || bound == 0) continue;
    for (std::int64_t head = 0; head < op.heads; ++head) {
      Head(op, request, head).Run(bound - 1 - rows, rows, op.reads[request] >= 0);
    }
  }
}

}  // namespace kvasir::cpu
