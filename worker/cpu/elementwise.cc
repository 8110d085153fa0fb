#include <algorithm>

#include "absl/strings/str_format.h"
#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/gated.h"

namespace kvasir::cpu {

absl::Status Embed(const EmbedOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::int64_t id = op.ids[r];
    if (id < 0 || id >= op.vocab) {
      return absl::InvalidArgumentError(
          absl::StrFormat("token id %d of row %d is outside the vocabulary of %d tokens", id, r, op.vocab));
    }
    std::copy_n(op.table + id * op.hidden, op.hidden, op.out + r * op.hidden);
  }
  return absl::OkStatus();
}

void Add(const AddOp& op) {
  for (std::int64_t i = 0; i < op.count; ++i) op.x[i] += op.y[i];
}

void SwiGlu(const SwiGluOp& op) {
  for (std::int64_t i = 0; i < op.rows * op.cols; ++i) {
    op.out[i] = Gated(op.activation, op.gate[i], op.up[i]);
  }
}

void SigmoidGate(const SigmoidGateOp& op) {
  for (std::int64_t i = 0; i < op.count; ++i) op.x[i] *= Sigmoid(op.gate[i]);
}

void CopyRows(const CopyRowsOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    std::copy_n(op.in + r * op.in_stride, op.cols, op.out + r * op.out_stride);
  }
}

}  // namespace kvasir::cpu
