// One thread per rank of a plan, for as long as the plan is in memory. Collectives need all ranks of a
// process to run at the same time, and a device context stays with its thread.
#ifndef KVASIR_WORKER_SERVICE_RANK_THREADS_H_
#define KVASIR_WORKER_SERVICE_RANK_THREADS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace kvasir {

class RankThreads {
 public:
  explicit RankThreads(std::size_t count);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls `work(i)` on thread i, for all i at once, and waits for all. Calls do not overlap.
  std::vector<absl::Status> Run(const std::function<absl::Status(std::size_t)>& work);

 private:
  void Loop(std::size_t index);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<absl::Status(std::size_t)>* work_ = nullptr;
  std::int64_t round_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<absl::Status> statuses_;
  std::vector<std::thread> threads_;
};

// The status that explains the others: a cause before the loss of a peer, and that before a cancellation,
// which only says that something else happened. OK only if all are.
[[nodiscard]] absl::Status FirstCause(const std::vector<absl::Status>& statuses);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_RANK_THREADS_H_
