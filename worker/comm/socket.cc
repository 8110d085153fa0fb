#include "worker/comm/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr int kBacklog = 128;
// How soon a wait notices that it was given up.
constexpr std::chrono::milliseconds kStopLatency{20};

std::string ErrnoText(int error) { return std::generic_category().message(error); }

absl::Status Unreachable(const CommEndpoint& endpoint, const std::string& why) {
  return MakeError(
      {.code = absl::StatusCode::kUnavailable,
       .reason = reason::kPeerUnreachable,
       .message = absl::StrFormat("%s: %s; check that the worker runs and that the address is reachable",
                                  EndpointText(endpoint), why),
       .metadata = {{"peer", EndpointText(endpoint)}}});
}

absl::Status PeerGone() {
  return MakeError({.code = absl::StatusCode::kUnavailable,
                    .reason = reason::kRankLost,
                    .message = "the peer closed the connection"});
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<AddressList> Resolve(const CommEndpoint& endpoint, bool passive) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0) return Unreachable(endpoint, gai_strerror(error));
  return AddressList(found, &freeaddrinfo);
}

std::int32_t BoundPort(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

// The outcome of a non-blocking connect.
absl::Status FinishConnect(int fd, const CommEndpoint& endpoint, const WaitLimit& limit) {
  KVASIR_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, limit));
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : Unreachable(endpoint, ErrnoText(error));
}

}  // namespace

std::string EndpointText(const CommEndpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  if (v6) return absl::StrFormat("[%s]:%d", endpoint.host, endpoint.port);
  return absl::StrFormat("%s:%d", endpoint.host, endpoint.port);
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Socket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void PrepareStream(int fd) {
  const int on = 1;
  // Best effort: without it small messages are slow, not wrong.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  (void)fcntl(fd, F_SETFL, O_NONBLOCK);
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

absl::StatusOr<Listening> ListenTcp(const CommEndpoint& endpoint) {
  KVASIR_ASSIGN_OR_RETURN(const AddressList addresses, Resolve(endpoint, /*passive=*/true));
  int error = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Socket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol));
    const int on = 1;
    if (socket.valid() && setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(socket.fd(), a->ai_addr, a->ai_addrlen) == 0 && listen(socket.fd(), kBacklog) == 0) {
      const std::int32_t port = BoundPort(socket.fd());
      return Listening{std::move(socket), port};
    }
    error = errno;
  }
  return Unreachable(endpoint, "cannot listen: " + ErrnoText(error));
}

absl::StatusOr<Socket> DialTcp(const CommEndpoint& endpoint, const WaitLimit& limit) {
  KVASIR_ASSIGN_OR_RETURN(const AddressList addresses, Resolve(endpoint, /*passive=*/false));
  absl::Status last = Unreachable(endpoint, "the name has no address");
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Socket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol));
    if (!socket.valid()) {
      last = Unreachable(endpoint, ErrnoText(errno));
      continue;
    }
    if (connect(socket.fd(), a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
      last = Unreachable(endpoint, ErrnoText(errno));
      continue;
    }
    last = FinishConnect(socket.fd(), endpoint, limit);
    if (last.ok()) {
      PrepareStream(socket.fd());
      return socket;
    }
  }
  return last;
}

absl::Status WaitFor(int fd, short events, const WaitLimit& limit) {  // NOLINT(google-runtime-int): poll(2)
  while (true) {
    if (limit.stop.stop_requested()) {
      return MakeError({.code = absl::StatusCode::kCancelled,
                        .reason = reason::kCallCancelled,
                        .message = "given up before the peer answered"});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(limit.deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return MakeError({.code = absl::StatusCode::kDeadlineExceeded,
                        .reason = reason::kDeadlineExpired,
                        .message = "the peer did not answer in time"});
    }
    pollfd waiting = {fd, events, 0};
    if (poll(&waiting, 1, static_cast<int>(std::min(left, kStopLatency).count())) > 0)
      return absl::OkStatus();
  }
}

Progress TrySend(int fd, std::span<const std::byte> bytes) {
  const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return {static_cast<std::size_t>(sent), false};
  return {0, errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR};
}

Progress TryReceive(int fd, std::span<std::byte> bytes) {
  const ssize_t received = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (received > 0) return {static_cast<std::size_t>(received), false};
  if (received == 0) return {0, true};
  return {0, errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR};
}

absl::Status SendAll(int fd, std::span<const std::byte> bytes, const WaitLimit& limit) {
  while (!bytes.empty()) {
    const Progress progress = TrySend(fd, bytes);
    if (progress.closed) return PeerGone();
    bytes = bytes.subspan(progress.bytes);
    if (progress.bytes == 0) KVASIR_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, limit));
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, std::span<std::byte> bytes, const WaitLimit& limit) {
  while (!bytes.empty()) {
    const Progress progress = TryReceive(fd, bytes);
    if (progress.closed) return PeerGone();
    bytes = bytes.subspan(progress.bytes);
    if (progress.bytes == 0) KVASIR_RETURN_IF_ERROR(WaitFor(fd, POLLIN, limit));
  }
  return absl::OkStatus();
}

bool PeerClosed(int fd) {
  pollfd waiting = {fd, POLLRDHUP, 0};
  return poll(&waiting, 1, 0) > 0 && (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace kvasir
