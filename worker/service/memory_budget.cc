#include "worker/service/memory_budget.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

class BudgetedMemory final : public DeviceMemory {
 public:
  BudgetedMemory(std::unique_ptr<DeviceMemory> memory, std::shared_ptr<MemoryBudget> budget, Bytes taken)
      : memory_(std::move(memory)), budget_(std::move(budget)), taken_(taken) {}
  ~BudgetedMemory() override {
    memory_.reset();
    budget_->Return(taken_);
  }
  [[nodiscard]] std::byte* data() const override { return memory_->data(); }
  [[nodiscard]] Bytes size() const override { return memory_->size(); }

 private:
  std::unique_ptr<DeviceMemory> memory_;
  const std::shared_ptr<MemoryBudget> budget_;
  const Bytes taken_;
};

class BudgetedBackend final : public Backend {
 public:
  BudgetedBackend(std::unique_ptr<Backend> backend, std::shared_ptr<MemoryBudget> budget)
      : backend_(std::move(backend)), budget_(std::move(budget)) {}

  [[nodiscard]] DeviceFacts Describe() const override {
    DeviceFacts facts = backend_->Describe();
    facts.memory_bytes = budget_->limit();
    return facts;
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(Bytes bytes) override {
    KVASIR_RETURN_IF_ERROR(budget_->Take(bytes));
    absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = backend_->Allocate(bytes);
    if (!memory.ok()) {
      budget_->Return(bytes);
      return memory.status();
    }
    return std::make_unique<BudgetedMemory>(*std::move(memory), budget_, bytes);
  }
  absl::Status Write(std::byte* to, std::span<const std::byte> from) override {
    return backend_->Write(to, from);
  }
  absl::Status Read(std::span<std::byte> to, const std::byte* from) override {
    return backend_->Read(to, from);
  }
  absl::Status Zero(std::byte* at, Bytes bytes) override { return backend_->Zero(at, bytes); }
  absl::Status Copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    return backend_->Copy(to, from, bytes);
  }
  absl::Status Run(const LaunchList& list) override { return backend_->Run(list); }
  absl::StatusOr<std::unique_ptr<Graph>> Capture(const LaunchList& list) override {
    return backend_->Capture(list);
  }

 private:
  const std::unique_ptr<Backend> backend_;
  const std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace

absl::Status MemoryBudget::Take(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const Bytes left = limit_ - used_;
  if (bytes > left) {
    return MakeError(
        {.code = absl::StatusCode::kResourceExhausted,
         .reason = reason::kOutOfMemory,
         .message = absl::StrFormat("%d bytes are wanted and %d of %d are free, %d too few; free another "
                                    "plan, or plan with less memory",
                                    bytes.value(), left.value(), limit_.value(), (bytes - left).value()),
         .metadata = {{"wanted_bytes", std::to_string(bytes.value())},
                      {"free_bytes", std::to_string(left.value())},
                      {"shortfall_bytes", std::to_string((bytes - left).value())}}});
  }
  used_ += bytes;
  return absl::OkStatus();
}

void MemoryBudget::Return(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  used_ = used_ - bytes;
}

Bytes MemoryBudget::free() const {
  const std::lock_guard lock(mutex_);
  return limit_ - used_;
}

std::unique_ptr<Backend> WithinBudget(std::unique_ptr<Backend> backend,
                                      std::shared_ptr<MemoryBudget> budget) {
  return std::make_unique<BudgetedBackend>(std::move(backend), std::move(budget));
}

}  // namespace kvasir
