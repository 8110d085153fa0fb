// Ranks of one deployment as threads of a test, over either kind of communicator.
#ifndef KVASIR_TESTS_WORKER_COMM_COMM_RANKS_H_
#define KVASIR_TESTS_WORKER_COMM_COMM_RANKS_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/comm/comm_listener.h"
#include "worker/comm/rank_comms.h"
#include "worker/comm/tcp_comm.h"
#include "worker/comm/thread_comm.h"

namespace kvasir::testing {

enum class Wire { kThread, kTcp };

// Workers of one rank each: a listener per rank.
class TcpWorld {
 public:
  explicit TcpWorld(std::int64_t ranks, const CommListenerOptions& options = {}) {
    for (std::int64_t i = 0; i < ranks; ++i) {
      auto listener = CommListener::Start(options);
      EXPECT_TRUE(listener.ok()) << listener.status();
      listeners.push_back(*std::move(listener));
      endpoints.push_back({"127.0.0.1", listeners.back()->port()});
    }
  }

  [[nodiscard]] MeshOptions Options(std::int64_t rank, std::chrono::milliseconds timeout) const {
    MeshOptions options;
    options.deployment = "test";
    options.epoch = Epoch(7);
    options.plan_id = std::string(64, 'a');
    options.rank = static_cast<std::int32_t>(rank);
    options.endpoints = endpoints;
    options.connect_timeout = timeout;
    options.collective_timeout = timeout;
    return options;
  }

  std::vector<std::unique_ptr<CommListener>> listeners;
  std::vector<CommEndpoint> endpoints;
};

// Runs `body(rank)` on one thread per rank and joins them.
inline void OnRanks(std::int64_t ranks, const std::function<void(std::int64_t)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

inline std::vector<RankComms> MakeComms(Wire wire, TcpWorld& world, std::int64_t dcp,
                                        std::chrono::milliseconds timeout) {
  const auto ranks = static_cast<std::int64_t>(world.endpoints.size());
  if (wire == Wire::kThread) return MakeThreadComms(ranks, dcp, timeout);
  std::vector<RankComms> comms(world.endpoints.size());
  OnRanks(ranks, [&](std::int64_t rank) {
    const auto i = static_cast<std::size_t>(rank);
    absl::StatusOr<RankComms> made = MakeTcpComms(*world.listeners[i], world.Options(rank, timeout), dcp);
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) comms[i] = *std::move(made);
  });
  return comms;
}

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_COMM_COMM_RANKS_H_
