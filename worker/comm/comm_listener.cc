#include "worker/comm/comm_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

constexpr std::chrono::milliseconds kStopLatency{20};

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

absl::StatusOr<Meeting::Arrival> Meeting::Next(const WaitLimit& limit) {
  std::unique_lock lock(mutex_);
  while (arrived_.empty() && failure_.ok()) {
    if (limit.stop.stop_requested()) return absl::CancelledError("given up while waiting for other ranks");
    const auto now = std::chrono::steady_clock::now();
    if (now >= limit.deadline) return absl::DeadlineExceededError("a rank did not connect in time");
    changed_.wait_until(lock, std::min(limit.deadline, now + kStopLatency));
  }
  if (!failure_.ok()) return failure_;
  Arrival arrival = std::move(arrived_.front());
  arrived_.pop_front();
  return arrival;
}

bool Meeting::Deliver(const Hello& peer, Socket& socket) {
  const std::lock_guard lock(mutex_);
  const absl::Status same = CheckSamePlan(self_, peer);
  if (!same.ok()) {
    failure_ = same;
  } else if (peer.from < self_.from || std::find(seen_.begin(), seen_.end(), peer.from) != seen_.end()) {
    return false;  // lower ranks are dialled, and nobody comes twice
  } else {
    seen_.push_back(peer.from);
    arrived_.push_back({peer.from, std::move(socket)});
  }
  changed_.notify_all();
  return same.ok();
}

Hello Meeting::Answer(const Hello& peer) const {
  Hello answer = self_;
  answer.to = peer.from;
  return answer;
}

absl::StatusOr<std::unique_ptr<CommListener>> CommListener::Start(const CommListenerOptions& options) {
  KVASIR_ASSIGN_OR_RETURN(Listening listening, ListenTcp(options.listen));
  std::unique_ptr<CommListener> listener(new CommListener(options));
  listener->port_ = listening.bound_port;
  listener->listening_ = std::move(listening.socket);
  listener->wake_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!listener->wake_.valid()) return absl::ResourceExhaustedError("no file descriptor is left");
  listener->thread_ = std::thread([raw = listener.get()] { raw->Loop(); });
  return listener;
}

CommListener::~CommListener() {
  stopping_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

void CommListener::Wake() {
  const std::uint64_t one = 1;
  (void)!write(wake_.fd(), &one, sizeof(one));  // cannot fail but when it is signalled already
}

absl::StatusOr<std::shared_ptr<Meeting>> CommListener::Expect(const Hello& self) {
  auto meeting = std::make_shared<Meeting>(self);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(meetings_, [](const auto& entry) { return entry.second.expired(); });
    const MeetingKey key{self.deployment, self.epoch, self.from};
    if (!meetings_.emplace(key, meeting).second) {
      return absl::AlreadyExistsError(
          absl::StrFormat("rank %d of deployment %s, epoch %d, waits for its peers already", self.from,
                          self.deployment, self.epoch.value()));
    }
  }
  Wake();  // peers may be here already
  return meeting;
}

std::shared_ptr<Meeting> CommListener::Find(const Hello& hello) {
  const std::lock_guard lock(mutex_);
  const auto found = meetings_.find({hello.deployment, hello.epoch, hello.to});
  return found == meetings_.end() ? nullptr : found->second.lock();
}

void CommListener::Loop() {
  while (!stopping_) {
    Wait();
    Accept();
    std::erase_if(newcomers_, [this](Newcomer& newcomer) { return !Advance(newcomer); });
  }
}

void CommListener::Wait() {
  std::vector<pollfd> fds = {{wake_.fd(), POLLIN, 0}};
  if (newcomers_.size() < options_.connections_max) fds.push_back({listening_.fd(), POLLIN, 0});
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (const Newcomer& newcomer : newcomers_) {
    const bool parked = newcomer.greeted;
    fds.push_back(
        {newcomer.socket.fd(), static_cast<decltype(pollfd::events)>(parked ? POLLRDHUP : POLLIN), 0});
    until = std::min(until, newcomer.until);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  (void)poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(0, left.count())));
  std::uint64_t ignored = 0;
  (void)!read(wake_.fd(), &ignored, sizeof(ignored));
}

void CommListener::Accept() {
  while (newcomers_.size() < options_.connections_max) {
    Socket socket(accept4(listening_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) return;
    PrepareStream(socket.fd());
    Newcomer newcomer;
    newcomer.socket = std::move(socket);
    newcomer.until = std::chrono::steady_clock::now() + options_.greeting_timeout;
    newcomers_.push_back(std::move(newcomer));
  }
}

bool CommListener::Advance(Newcomer& newcomer) {
  if (std::chrono::steady_clock::now() >= newcomer.until) return false;
  if (!newcomer.greeted && !Read(newcomer)) return false;
  if (!newcomer.greeted) return true;
  const std::shared_ptr<Meeting> meeting = Find(newcomer.hello);
  if (meeting == nullptr) return !PeerClosed(newcomer.socket.fd());
  // The answer goes out before the connection is handed over, so that it is the first thing the peer reads.
  // It fits into an empty send buffer.
  const std::string answer = EncodeHello(meeting->Answer(newcomer.hello));
  if (TrySend(newcomer.socket.fd(), BytesOf(answer)).bytes == answer.size()) {
    (void)meeting->Deliver(newcomer.hello, newcomer.socket);
  }
  return false;  // handed over, or closed with the entry
}

bool CommListener::Read(Newcomer& newcomer) {
  while (true) {
    const std::size_t have = newcomer.bytes.size();
    if (have < newcomer.wanted) {
      std::array<std::byte, kHelloBodyMax> chunk = {};
      const Progress progress =
          TryReceive(newcomer.socket.fd(), std::span(chunk).first(newcomer.wanted - have));
      if (progress.closed) return false;
      if (progress.bytes == 0) return true;
      newcomer.bytes.append(reinterpret_cast<const char*>(chunk.data()), progress.bytes);
      continue;
    }
    const std::span<const std::byte> bytes = BytesOf(newcomer.bytes);
    const absl::StatusOr<std::size_t> body = ParseHelloHead(bytes.first(kHelloHeadBytes), /*peer=*/-1);
    if (!body.ok()) {
      if (absl::IsFailedPrecondition(body.status())) {
        (void)TrySend(newcomer.socket.fd(), BytesOf(EncodeVersion()));  // closed in any case
      }
      return false;
    }
    newcomer.wanted = kHelloHeadBytes + *body;
    if (have < newcomer.wanted) continue;
    absl::StatusOr<Hello> hello = ParseHelloBody(bytes.subspan(kHelloHeadBytes));
    if (!hello.ok()) return false;
    newcomer.hello = *std::move(hello);
    newcomer.greeted = true;
    newcomer.until = std::chrono::steady_clock::now() + options_.parked_timeout;
    return true;
  }
}

}  // namespace kvasir
