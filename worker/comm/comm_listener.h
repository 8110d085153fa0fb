// The one port on which a worker takes connections of other ranks. A thread reads each newcomer's greeting
// and hands the connection to the rank that waits for it. Strangers are closed: a greeting is bounded in size
// and in time, and so is the number of connections that nobody waits for.
#ifndef KVASIR_WORKER_COMM_COMM_LISTENER_H_
#define KVASIR_WORKER_COMM_COMM_LISTENER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/comm/hello.h"
#include "worker/comm/socket.h"

namespace kvasir {

// A rank's waiting for the peers above it. Peers may come before the rank: the listener keeps them for a
// while.
class Meeting {
 public:
  explicit Meeting(Hello self) : self_(std::move(self)) {}

  struct Arrival {
    std::int32_t rank = 0;
    Socket socket;
  };
  // The next peer. RANKS_DISAGREE where one came with another plan.
  absl::StatusOr<Arrival> Next(const WaitLimit& limit);

 private:
  friend class CommListener;
  // False if the connection is not wanted.
  bool Deliver(const Hello& peer, Socket& socket);
  [[nodiscard]] Hello Answer(const Hello& peer) const;

  const Hello self_;  // `from` is the waiting rank
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrival> arrived_;
  std::vector<std::int32_t> seen_;
  absl::Status failure_;
};

struct CommListenerOptions {
  CommEndpoint listen{"127.0.0.1", 0};
  std::chrono::milliseconds greeting_timeout{5'000};  // from accept to a complete greeting
  std::chrono::milliseconds parked_timeout{30'000};   // greeted, and waiting for its rank to be prepared here
  std::size_t connections_max = 256;                  // of both kinds; more wait in the system's backlog
};

class CommListener {
 public:
  static absl::StatusOr<std::unique_ptr<CommListener>> Start(const CommListenerOptions& options);
  ~CommListener();
  CommListener(const CommListener&) = delete;
  CommListener& operator=(const CommListener&) = delete;

  [[nodiscard]] std::int32_t port() const { return port_; }

  // From now until the meeting is dropped, peers that greet `self.from` of its deployment and epoch are
  // handed over. AlreadyExists while the same rank waits already.
  absl::StatusOr<std::shared_ptr<Meeting>> Expect(const Hello& self);

 private:
  using MeetingKey = std::tuple<std::string, Epoch, std::int32_t>;  // deployment, epoch, rank
  struct Newcomer {
    Socket socket;
    std::string bytes;
    std::size_t wanted = kHelloHeadBytes;
    SteadyTime until;
    bool greeted = false;
    Hello hello;
  };

  explicit CommListener(const CommListenerOptions& options) : options_(options) {}
  void Loop();
  void Wait();
  void Accept();
  // False: close it.
  bool Advance(Newcomer& newcomer);
  bool Read(Newcomer& newcomer);
  std::shared_ptr<Meeting> Find(const Hello& hello);
  void Wake();

  const CommListenerOptions options_;
  std::int32_t port_ = 0;
  Socket listening_;
  Socket wake_;
  std::atomic<bool> stopping_{false};
  std::list<Newcomer> newcomers_;  // the thread's own
  std::mutex mutex_;
  std::map<MeetingKey, std::weak_ptr<Meeting>> meetings_;
  std::thread thread_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_COMM_LISTENER_H_
