#include "tests/testing/fault_backend.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace kvasir::testing {
namespace {

class CountedMemory : public DeviceMemory {
 public:
  CountedMemory(std::unique_ptr<DeviceMemory> inner, std::shared_ptr<std::int64_t> live)
      : inner_(std::move(inner)), live_(std::move(live)) {
    ++*live_;
  }
  ~CountedMemory() override { --*live_; }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;
  [[nodiscard]] std::byte* data() const override { return inner_->data(); }
  [[nodiscard]] Bytes size() const override { return inner_->size(); }

 private:
  std::unique_ptr<DeviceMemory> inner_;
  std::shared_ptr<std::int64_t> live_;
};

}  // namespace

class FaultGraph : public Graph {
 public:
  FaultGraph(FaultBackend& backend, std::unique_ptr<Graph> inner)
      : backend_(backend), inner_(std::move(inner)), live_(backend.live_graphs_) {
    ++*live_;
  }
  ~FaultGraph() override { --*live_; }
  FaultGraph(const FaultGraph&) = delete;
  FaultGraph& operator=(const FaultGraph&) = delete;
  absl::Status Replay() override {
    KVASIR_RETURN_IF_ERROR(backend_.Count("Replay"));
    return inner_->Replay();
  }

 private:
  FaultBackend& backend_;
  std::unique_ptr<Graph> inner_;
  std::shared_ptr<std::int64_t> live_;
};

absl::Status FaultBackend::Count(const char* what) {
  ++calls_;
  if (left_ == 0) return absl::OkStatus();
  --left_;
  if (left_ > 0) return absl::OkStatus();
  fired_ = true;
  return absl::AbortedError(absl::StrFormat("planted fault at %s", what));
}

absl::StatusOr<std::unique_ptr<DeviceMemory>> FaultBackend::Allocate(Bytes bytes) {
  KVASIR_RETURN_IF_ERROR(Count("Allocate"));
  KVASIR_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, inner_.Allocate(bytes));
  return std::make_unique<CountedMemory>(std::move(memory), live_);
}

absl::Status FaultBackend::Write(std::byte* to, std::span<const std::byte> from) {
  KVASIR_RETURN_IF_ERROR(Count("Write"));
  return inner_.Write(to, from);
}

absl::Status FaultBackend::Read(std::span<std::byte> to, const std::byte* from) {
  KVASIR_RETURN_IF_ERROR(Count("Read"));
  KVASIR_RETURN_IF_ERROR(inner_.Read(to, from));
  if (change_) change_(to);
  return absl::OkStatus();
}

absl::Status FaultBackend::Copy(std::byte* to, const std::byte* from, Bytes bytes) {
  KVASIR_RETURN_IF_ERROR(Count("Copy"));
  return inner_.Copy(to, from, bytes);
}

absl::Status FaultBackend::Zero(std::byte* at, Bytes bytes) {
  KVASIR_RETURN_IF_ERROR(Count("Zero"));
  return inner_.Zero(at, bytes);
}

absl::Status FaultBackend::Run(const LaunchList& list) {
  KVASIR_RETURN_IF_ERROR(Count("Run"));
  return inner_.Run(list);
}

absl::StatusOr<std::unique_ptr<Graph>> FaultBackend::Capture(const LaunchList& list) {
  KVASIR_RETURN_IF_ERROR(Count("Capture"));
  KVASIR_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, inner_.Capture(list));
  return std::make_unique<FaultGraph>(*this, std::move(graph));
}

}  // namespace kvasir::testing
