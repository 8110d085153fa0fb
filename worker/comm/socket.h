// TCP sockets as owned values, never blocking: every wait has a deadline and can be given up.
#ifndef KVASIR_WORKER_COMM_SOCKET_H_
#define KVASIR_WORKER_COMM_SOCKET_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir {

using SteadyTime = std::chrono::steady_clock::time_point;

struct CommEndpoint {
  std::string host;
  std::int32_t port = 0;
};

// "host:port", with brackets around an IPv6 address.
[[nodiscard]] std::string EndpointText(const CommEndpoint& endpoint);

// A file descriptor that is closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

// Until when to wait, and who may end the wait before.
struct WaitLimit {
  SteadyTime deadline;
  std::stop_token stop;
};

// Listens with port 0 replaced by the system's choice; `bound_port` is the port. Unavailable names the
// address.
struct Listening {
  Socket socket;
  std::int32_t bound_port = 0;
};
[[nodiscard]] absl::StatusOr<Listening> ListenTcp(const CommEndpoint& endpoint);

// Unavailable if nobody listens there, DeadlineExceeded, Cancelled.
[[nodiscard]] absl::StatusOr<Socket> DialTcp(const CommEndpoint& endpoint, const WaitLimit& limit);

// Waits until `fd` has one of the poll(2) `events`, or an error to be found by the next read or write.
// NOLINTNEXTLINE(google-runtime-int): the type of poll(2)
[[nodiscard]] absl::Status WaitFor(int fd, short events, const WaitLimit& limit);

// What one attempt did; 0 bytes: try again when ready.
struct Progress {
  std::size_t bytes = 0;
  bool closed = false;  // by the peer, or by an error
};
[[nodiscard]] Progress TrySend(int fd, std::span<const std::byte> bytes);
[[nodiscard]] Progress TryReceive(int fd, std::span<std::byte> bytes);

// All of it. Unavailable if the peer closes.
[[nodiscard]] absl::Status SendAll(int fd, std::span<const std::byte> bytes, const WaitLimit& limit);
[[nodiscard]] absl::Status ReceiveAll(int fd, std::span<std::byte> bytes, const WaitLimit& limit);

// Accepted and dialled sockets: no delay, non-blocking, close on exec.
void PrepareStream(int fd);

// The peer has closed, or the connection is broken. Does not read.
[[nodiscard]] bool PeerClosed(int fd);

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_SOCKET_H_
