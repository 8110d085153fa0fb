#include "worker/cpu/collectives.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/status_macros.h"
#include "worker/cpu/combine.h"
#include "worker/cpu/reference_combine.h"

namespace kvasir::cpu {

Collectives::Collectives(Communicator* tensor, Communicator* context, CpuKernels kernels)
    : tensor_(tensor), context_(context), kernels_(kernels) {}

std::int64_t Collectives::Ranks(CommGroup group) const {
  const Communicator* communicator = group == CommGroup::kTensor ? tensor_ : context_;
  return communicator == nullptr ? 1 : communicator->size();
}

std::int64_t Collectives::RankIn(CommGroup group) const {
  const Communicator* communicator = group == CommGroup::kTensor ? tensor_ : context_;
  return communicator == nullptr ? 0 : communicator->rank();
}

absl::Status Collectives::Gather(CommGroup group, const float* mine, std::int64_t count,
                                 std::vector<float>* all) {
  const std::size_t local = static_cast<std::size_t>(count);
  all->resize(local * static_cast<std::size_t>(Ranks(group)));
  if (Ranks(group) == 1) {
    std::copy_n(mine, local, all->data());
    return absl::OkStatus();
  }
  Communicator* communicator = group == CommGroup::kTensor ? tensor_ : context_;
  return communicator->AllGather(std::as_bytes(std::span(mine, local)),
                                 std::as_writable_bytes(std::span(*all)));
}

absl::Status Collectives::GatherRows(CommGroup group, const float* in, std::int64_t rows, std::int64_t cols,
                                     float* out) {
  KVASIR_RETURN_IF_ERROR(Gather(group, in, rows * cols, &gathered_));
  const std::int64_t ranks = Ranks(group);
  for (std::int64_t r = 0; r < ranks; ++r) {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(gathered_.data() + (r * rows + row) * cols, cols, out + (row * ranks + r) * cols);
    }
  }
  return absl::OkStatus();
}

absl::Status Collectives::GatherHeads(const GatherHeadsOp& op) {
  return GatherRows(op.group, op.in, op.rows, op.heads_local * op.dim, op.out);
}

absl::Status Collectives::GatherColumns(const GatherColumnsOp& op) {
  return GatherRows(op.group, op.in, op.rows, op.cols_local, op.out);
}

absl::Status Collectives::Combine(const CombineOp& op) {
  GatheredPartials parts{op.partial, op.lse, Ranks(op.group), RankIn(op.group)};
  if (parts.ranks > 1) {
    const std::int64_t row_heads = op.rows * op.heads_local * parts.ranks;
    KVASIR_RETURN_IF_ERROR(Gather(op.group, op.partial, row_heads * op.dim, &gathered_));
    KVASIR_RETURN_IF_ERROR(Gather(op.group, op.lse, row_heads, &gathered_lse_));
    parts.partial = gathered_.data();
    parts.lse = gathered_lse_.data();
  }
  if (kernels_ == CpuKernels::kReference) {
    ReferenceCombine(op, parts);
  } else {
    cpu::Combine(op, parts);
  }
  return absl::OkStatus();
}

absl::Status Collectives::AllReduce(const AllReduceOp& op) {
  if (Ranks(op.group) == 1) return absl::OkStatus();
  KVASIR_RETURN_IF_ERROR(Gather(op.group, op.x, op.count, &gathered_));
  std::copy_n(gathered_.data(), op.count, op.x);
  for (std::int64_t r = 1; r < Ranks(op.group); ++r) {
    const float* part = gathered_.data() + r * op.count;
    for (std::int64_t i = 0; i < op.count; ++i) op.x[i] += part[i];
  }
  return absl::OkStatus();
}

}  // namespace kvasir::cpu
