// A backend that fails its n-th call and passes all others on: SQLite's way of testing every error path.
// Calls of its graphs count too.
#ifndef KVASIR_TESTS_TESTING_FAULT_BACKEND_H_
#define KVASIR_TESTS_TESTING_FAULT_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "worker/engine/backend.h"

namespace kvasir::testing {

class FaultBackend : public Backend {
 public:
  // `inner` outlives it.
  explicit FaultBackend(Backend& inner) : inner_(inner) {}

  // Call number `call` from now on (1: the next) fails with Aborted "planted fault at <which call>"; 0: none.
  void FailCall(std::int64_t call) {
    left_ = call;
    fired_ = false;
  }
  // What every Read brings may be changed on its way.
  void ChangeReads(std::function<void(std::span<std::byte>)> change) { change_ = std::move(change); }
  [[nodiscard]] bool fired() const { return fired_; }
  [[nodiscard]] std::int64_t calls() const { return calls_; }
  // Allocations that are alive.
  [[nodiscard]] std::int64_t live_allocations() const { return *live_; }
  // Captured graphs that are alive.
  [[nodiscard]] std::int64_t live_graphs() const { return *live_graphs_; }

  [[nodiscard]] DeviceFacts Describe() const override { return inner_.Describe(); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(Bytes bytes) override;
  absl::Status Write(std::byte* to, std::span<const std::byte> from) override;
  absl::Status Read(std::span<std::byte> to, const std::byte* from) override;
  absl::Status Zero(std::byte* at, Bytes bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from, Bytes bytes) override;
  absl::Status Run(const LaunchList& list) override;
  absl::StatusOr<std::unique_ptr<Graph>> Capture(const LaunchList& list) override;

 private:
  friend class FaultGraph;
  absl::Status Count(const char* what);

  Backend& inner_;
  std::function<void(std::span<std::byte>)> change_;
  std::int64_t left_ = 0;
  bool fired_ = false;
  std::int64_t calls_ = 0;
  std::shared_ptr<std::int64_t> live_ = std::make_shared<std::int64_t>(0);
  std::shared_ptr<std::int64_t> live_graphs_ = std::make_shared<std::int64_t>(0);
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_FAULT_BACKEND_H_
