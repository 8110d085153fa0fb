// The threads that handlers run on: planning or waiting for a peer must not hold up gRPC's own threads.
#ifndef KVASIR_COMMON_RPC_CALL_POOL_H_
#define KVASIR_COMMON_RPC_CALL_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kvasir {

class CallPool {
 public:
  // At most `waiting_max` calls wait for one of `threads` threads.
  explicit CallPool(std::size_t threads, std::size_t waiting_max = 256);
  // Runs what waits, then joins.
  ~CallPool();
  CallPool(const CallPool&) = delete;
  CallPool& operator=(const CallPool&) = delete;

  // False, without running `work`, when too many wait already.
  [[nodiscard]] bool Run(std::function<void()> work);

 private:
  void Loop();

  const std::size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_CALL_POOL_H_
