// What one rank's place on this worker may allocate, over all plans that are in memory there: an old plan and
// a new one side by side share it. Exact: a byte counts from its allocation until it is freed.
#ifndef KVASIR_WORKER_SERVICE_MEMORY_BUDGET_H_
#define KVASIR_WORKER_SERVICE_MEMORY_BUDGET_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "common/base/units.h"
#include "worker/engine/backend.h"

namespace kvasir {

class MemoryBudget {
 public:
  explicit MemoryBudget(Bytes limit) : limit_(limit) {}
  // ResourceExhausted OUT_OF_MEMORY, metadata wanted_bytes, free_bytes, shortfall_bytes; takes nothing then.
  absl::Status Take(Bytes bytes);
  void Return(Bytes bytes);
  [[nodiscard]] Bytes limit() const { return limit_; }
  [[nodiscard]] Bytes free() const;

 private:
  const Bytes limit_;
  mutable std::mutex mutex_;
  Bytes used_;
};

// `backend` with every allocation counted against `budget`.
[[nodiscard]] std::unique_ptr<Backend> WithinBudget(std::unique_ptr<Backend> backend,
                                                    std::shared_ptr<MemoryBudget> budget);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_MEMORY_BUDGET_H_
