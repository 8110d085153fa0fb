#include "worker/cuda/dispatch.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/cuda/shared_bytes.h"
#include "worker/cuda/workspace.h"

namespace kvasir::cuda {
namespace {

constexpr std::array<DecodeKernelRow, 2> kDecodeKernels = {{
    {.id = DecodeKernelId::kMma,
     .name = "mma",
     .architecture_min = 80,
     .takes_bf16 = true,
     .takes_f32 = false,
     .values_in_keys = true,
     .key_dim_max = kDecodeKeyDimMost,
     .value_dim_max = kDecodeValueDimMost,
     .key_dim_multiple = 16,
     .value_dim_multiple = 32,
     .byte_multiple = 16},
    {.id = DecodeKernelId::kThreads,
     .name = "threads",
     .architecture_min = 80,
     .takes_bf16 = true,
     .takes_f32 = true,
     .values_in_keys = false,
     .key_dim_max = kDecodeKeyDimMost,
     .value_dim_max = kDecodeValueDimMost,
     .key_dim_multiple = 1,
     .value_dim_multiple = 1,
     .byte_multiple = 1},
}};

void AtMost(std::string_view what, std::int64_t is, std::int64_t most, std::vector<std::string>& missing) {
  if (is > most) missing.push_back(absl::StrFormat("%s %d (at most %d)", what, is, most));
}

void MultipleOf(std::string_view what, std::int64_t is, std::int64_t of, std::vector<std::string>& missing) {
  if (is % of != 0) missing.push_back(absl::StrFormat("%s %d (multiples of %d)", what, is, of));
}

// The largest power of two that divides all of them; 0 is divided by every one.
std::int64_t AlignmentOf(const PageGeometry& page) {
  const auto bits = static_cast<std::uint64_t>(page.stride_bytes | page.layer_offset_bytes | page.row_bytes);
  return bits == 0 ? 1 : static_cast<std::int64_t>(bits & (~bits + 1));
}

std::vector<std::string> MissingOf(const DecodeKernelRow& row, const DecodeShape& shape,
                                   const DeviceLimits& device) {
  std::vector<std::string> missing;
  if (device.architecture < row.architecture_min) {
    missing.push_back(
        absl::StrFormat("architecture sm_%d (sm_%d or newer)", device.architecture, row.architecture_min));
  }
  const bool takes =
      shape.dtype == DType::kBf16 ? row.takes_bf16 : shape.dtype == DType::kF32 && row.takes_f32;
  if (!takes) missing.push_back(absl::StrFormat("rows of %s", DTypeName(shape.dtype)));
  AtMost("key_dim", shape.key_dim, row.key_dim_max, missing);
  AtMost("value_dim", shape.value_dim, row.value_dim_max, missing);
  MultipleOf("key_dim", shape.key_dim, row.key_dim_multiple, missing);
  MultipleOf("value_dim", shape.value_dim, row.value_dim_multiple, missing);
  MultipleOf("rows at bytes", shape.row_alignment, row.byte_multiple, missing);
  if (row.values_in_keys && !shape.values_in_keys)
    missing.emplace_back("values that do not stand in the keys");
  AtMost("bytes of shared memory", SharedBytesOf(row.id, shape), device.shared_bytes_max, missing);
  return missing;
}

absl::Status Refused(std::string_view operation, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: no CUDA kernel runs this shape: %s; the CPU backend has no such limits", operation, why));
}

absl::Status CheckDecode(std::string_view operation, const DecodeShape& shape, const DeviceLimits& device) {
  const auto chosen = ChooseDecode(shape, device);
  const auto* lacking = std::get_if<std::vector<LackingKernel>>(&chosen);
  if (lacking == nullptr) return absl::OkStatus();
  std::string why;
  for (const LackingKernel& kernel : *lacking) {
    why += absl::StrFormat("%s%s lacks ", why.empty() ? "" : "; ", kernel.name);
    for (const std::string& missing : kernel.missing)
      why += (&missing == kernel.missing.data() ? "" : ", ") + missing;
  }
  return Refused(operation, why);
}

absl::Status CheckState(std::string_view operation, std::int64_t dim, const DeviceLimits& device) {
  std::vector<std::string> missing;
  AtMost("bytes of shared memory", KdaSharedBytes(dim), device.shared_bytes_max, missing);
  return missing.empty() ? absl::OkStatus() : Refused(operation, missing.front());
}

struct Checker {
  const DeviceLimits& device;

  absl::Status operator()(const MlaDecodeOp& op) const {
    return CheckDecode("MLA decode", ShapeOf(op), device);
  }
  absl::Status operator()(const GqaDecodeOp& op) const {
    return CheckDecode("GQA decode", ShapeOf(op), device);
  }
  absl::Status operator()(const KdaStepOp& op) const { return CheckState("KDA step", op.dim, device); }
  absl::Status operator()(const KdaReplayOp& op) const { return CheckState("KDA replay", op.dim, device); }
  absl::Status operator()(const RouteExpertsOp& op) const {
    std::vector<std::string> missing;
    AtMost("bytes of shared memory", RouteSharedBytes(op.experts, op.groups), kSharedBytesUnasked, missing);
    return missing.empty() ? absl::OkStatus() : Refused("expert routing", missing.front());
  }
  template <class Op>
  absl::Status operator()(const Op& /*op*/) const {
    return absl::OkStatus();
  }
};

}  // namespace

std::span<const DecodeKernelRow> DecodeKernels() { return kDecodeKernels; }

DecodeShape ShapeOf(const MlaDecodeOp& op) {
  return {.dtype = op.dtype,
          .key_dim = op.latent + op.rope,
          .value_dim = op.latent,
          .values_in_keys = true,
          .row_alignment = AlignmentOf(op.page)};
}

DecodeShape ShapeOf(const GqaDecodeOp& op) {
  return {.dtype = op.dtype,
          .key_dim = op.key_dim,
          .value_dim = op.value_dim,
          .values_in_keys = false,
          .row_alignment = AlignmentOf(op.page)};
}

std::int64_t SharedBytesOf(DecodeKernelId kernel, const DecodeShape& shape) {
  if (kernel == DecodeKernelId::kMma) return MmaSharedBytes(shape.key_dim);
  return DecodeSharedBytes(shape.key_dim, shape.value_dim, shape.values_in_keys);
}

std::variant<DecodeKernelId, std::vector<LackingKernel>> ChooseDecode(const DecodeShape& shape,
                                                                      const DeviceLimits& device) {
  std::vector<LackingKernel> lacking;
  for (const DecodeKernelRow& row : kDecodeKernels) {
    std::vector<std::string> missing = MissingOf(row, shape, device);
    if (missing.empty()) return row.id;
    lacking.push_back({row.name, std::move(missing)});
  }
  return lacking;
}

absl::Status CheckShapes(const LaunchList& list, const DeviceLimits& device) {
  for (const Launch& launch : list) KVASIR_RETURN_IF_ERROR(std::visit(Checker{device}, launch));
  return absl::OkStatus();
}

}  // namespace kvasir::cuda
