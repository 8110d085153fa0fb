// Ranks as threads of one test, with a communicator that is as simple as a barrier. It never times out: a
// rank that fails calls Abort, or the test hangs and ctest ends it.
#ifndef KVASIR_TESTS_TESTING_THREAD_RANKS_H_
#define KVASIR_TESTS_TESTING_THREAD_RANKS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/communicator.h"

namespace kvasir::testing {

// The meeting point of one group.
class ThreadGroup {
 public:
  explicit ThreadGroup(std::int64_t size);
  ~ThreadGroup();
  // Lives as long as the group.
  [[nodiscard]] Communicator* rank(std::int64_t rank);

 private:
  class Member;
  absl::Status AllGather(std::int64_t rank, std::span<const std::byte> mine, std::span<std::byte> all);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::span<const std::byte>> parts_;
  std::int64_t arrived_ = 0;
  std::int64_t copied_ = 0;
  std::int64_t round_ = 0;
  std::string aborted_;
};

// Calls `body(rank)` on one thread per rank and waits for all. The first error by rank order.
absl::Status RunRanks(std::int64_t ranks, const std::function<absl::Status(std::int64_t)>& body);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_THREAD_RANKS_H_
