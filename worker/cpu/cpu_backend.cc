#include "worker/cpu/cpu_backend.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/cpu/collectives.h"
#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/paged_decode.h"
#include "worker/cpu/recurrent.h"
#include "worker/cpu/reference_decode.h"
#include "worker/cpu/reference_experts.h"

namespace kvasir {
namespace {

constexpr std::int64_t kAlignment = 256;

using UsedBytes = std::atomic<std::int64_t>;

class CpuMemory : public DeviceMemory {
 public:
  CpuMemory(void* block, Bytes size, std::shared_ptr<UsedBytes> used)
      : block_(block), size_(size), used_(std::move(used)) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t alignment = static_cast<std::uintptr_t>(kAlignment);
    data_ = static_cast<std::byte*>(block) + (alignment - address % alignment) % alignment;
  }
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;
  ~CpuMemory() override {
    std::free(block_);
    *used_ -= size_.value();
  }
  [[nodiscard]] std::byte* data() const override { return data_; }
  [[nodiscard]] Bytes size() const override { return size_; }

 private:
  void* block_;
  std::byte* data_;
  Bytes size_;
  std::shared_ptr<UsedBytes> used_;  // of the backend, which may be gone before its memory
};

// Runs one operation. One overload per operation: a new operation does not compile until it has one.
class Runner {
 public:
  Runner(cpu::Collectives& collectives, CpuKernels kernels) : collectives_(collectives), kernels_(kernels) {}

  absl::Status operator()(const EmbedOp& op) { return cpu::Embed(op); }
  absl::Status operator()(const RmsNormOp& op) { return Done(cpu::RmsNorm, op); }
  absl::Status operator()(const LinearOp& op) { return Done(cpu::Linear, op); }
  absl::Status operator()(const RopeOp& op) { return Done(cpu::Rope, op); }
  absl::Status operator()(const AbsorbQueryOp& op) { return Done(cpu::AbsorbQuery, op); }
  absl::Status operator()(const CacheWriteOp& op) { return Done(cpu::CacheWrite, op); }
  absl::Status operator()(const MlaDecodeOp& op) {
    return Done(Reference() ? cpu::ReferenceDecode : cpu::MlaDecode, op);
  }
  absl::Status operator()(const GqaDecodeOp& op) { return Done(cpu::GqaDecode, op); }
  absl::Status operator()(const GatherHeadsOp& op) { return collectives_.GatherHeads(op); }
  absl::Status operator()(const CombineOp& op) { return collectives_.Combine(op); }
  absl::Status operator()(const ProjectValueOp& op) { return Done(cpu::ProjectValue, op); }
  absl::Status operator()(const AllReduceOp& op) { return collectives_.AllReduce(op); }
  absl::Status operator()(const GatherColumnsOp& op) { return collectives_.GatherColumns(op); }
  absl::Status operator()(const AddOp& op) { return Done(cpu::Add, op); }
  absl::Status operator()(const SwiGluOp& op) { return Done(cpu::SwiGlu, op); }
  absl::Status operator()(const MixResidualsOp& op) { return Done(cpu::MixResiduals, op); }
  absl::Status operator()(const SigmoidGateOp& op) { return Done(cpu::SigmoidGate, op); }
  absl::Status operator()(const CopyRowsOp& op) { return Done(cpu::CopyRows, op); }
  absl::Status operator()(const ArgmaxOp& op) { return Done(cpu::Argmax, op); }
  absl::Status operator()(const MarkovChainOp& op) { return cpu::MarkovChain(op); }
  absl::Status operator()(const ShortConvOp& op) {
    return Done(Reference() ? cpu::ReferenceShortConv : cpu::ShortConv, op);
  }
  absl::Status operator()(const L2NormOp& op) { return Done(cpu::L2Norm, op); }
  absl::Status operator()(const KdaGateOp& op) {
    return Done(Reference() ? cpu::ReferenceKdaGate : cpu::KdaGate, op);
  }
  absl::Status operator()(const KdaReplayOp& op) {
    return Done(Reference() ? cpu::ReferenceKdaReplay : cpu::KdaReplay, op);
  }
  absl::Status operator()(const KdaStepOp& op) {
    return Done(Reference() ? cpu::ReferenceKdaStep : cpu::KdaStep, op);
  }
  absl::Status operator()(const RouteExpertsOp& op) {
    return Done(Reference() ? cpu::ReferenceRouteExperts : cpu::RouteExperts, op);
  }
  absl::Status operator()(const ExpertMlpOp& op) {
    return Done(Reference() ? cpu::ReferenceExpertMlp : cpu::ExpertMlp, op);
  }

 private:
  template <class Op>
  static absl::Status Done(void (*kernel)(const Op&), const Op& op) {
    kernel(op);
    return absl::OkStatus();
  }

  [[nodiscard]] bool Reference() const { return kernels_ == CpuKernels::kReference; }

  cpu::Collectives& collectives_;
  CpuKernels kernels_;
};

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : options_(options), collectives_(options.tensor, options.context, options.kernels) {}

  [[nodiscard]] DeviceFacts Describe() const override {
    return {"cpu", options_.kernels == CpuKernels::kReference ? "host, reference kernels" : "host",
            options_.memory_limit};
  }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(Bytes bytes) override {
    const std::int64_t free = options_.memory_limit.value() - used_->load();
    if (bytes.value() < 0 || bytes.value() > free) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("memory: %d bytes asked for, %d of %d bytes are free on this device", bytes.value(),
                          free, options_.memory_limit.value()));
    }
    // calloc leaves large blocks to the kernel's zero pages, so an arena costs nothing before it is used.
    void* block = std::calloc(static_cast<std::size_t>(bytes.value() + kAlignment), 1);
    if (block == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("memory: the host refused %d bytes", bytes.value()));
    }
    *used_ += bytes.value();
    return std::make_unique<CpuMemory>(block, bytes, used_);
  }

  absl::Status Write(std::byte* to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return absl::OkStatus();
  }
  absl::Status Read(std::span<std::byte> to, const std::byte* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
    return absl::OkStatus();
  }
  absl::Status Zero(std::byte* at, Bytes bytes) override {
    if (bytes.value() > 0) std::memset(at, 0, static_cast<std::size_t>(bytes.value()));
    return absl::OkStatus();
  }
  absl::Status Copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    if (bytes.value() > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes.value()));
    return absl::OkStatus();
  }

  absl::Status Run(const LaunchList& list) override {
    Runner runner(collectives_, options_.kernels);
    for (const Launch& launch : list) KVASIR_RETURN_IF_ERROR(std::visit(runner, launch));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Graph>> Capture(const LaunchList& list) override;

 private:
  CpuOptions options_;
  cpu::Collectives collectives_;
  std::shared_ptr<UsedBytes> used_ = std::make_shared<UsedBytes>(0);
};

// A frozen copy of the list; nothing of the caller's list is looked at again.
class CpuGraph : public Graph {
 public:
  CpuGraph(CpuBackend& backend, LaunchList list) : backend_(backend), list_(std::move(list)) {}
  absl::Status Replay() override { return backend_.Run(list_); }

 private:
  CpuBackend& backend_;
  const LaunchList list_;
};

absl::StatusOr<std::unique_ptr<Graph>> CpuBackend::Capture(const LaunchList& list) {
  return std::make_unique<CpuGraph>(*this, list);
}

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace kvasir
