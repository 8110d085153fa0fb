#include "worker/comm/tcp_mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/comm/comm_errors.h"

namespace kvasir {
namespace {

// How soon a collective notices an abort by another thread of this rank; a peer's closing wakes it at once.
constexpr std::chrono::milliseconds kAbortLatency{20};

struct MessageHead {
  std::uint32_t group = 0;
  std::uint32_t zero = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(MessageHead) == 24);

std::span<const std::byte> BytesOf(const MessageHead& head) { return std::as_bytes(std::span(&head, 1)); }

// The same failure with the rank it is about.
absl::Status About(std::int32_t rank, const absl::Status& status) {
  if (absl::IsFailedPrecondition(status) || absl::IsCancelled(status)) return status;
  TypedError error = ErrorOf(status);
  error.message = absl::StrFormat("rank %d: %s", rank, error.message);
  error.metadata["rank"] = std::to_string(rank);
  return MakeError(error);
}

// Greets a lower rank and reads its answer, which comes once that rank is being prepared.
absl::Status Greet(int fd, const Hello& self, const WaitLimit& limit) {
  const std::string greeting = EncodeHello(self);
  KVASIR_RETURN_IF_ERROR(SendAll(fd, std::as_bytes(std::span(greeting)), limit));
  std::array<std::byte, kHelloHeadBytes> head = {};
  KVASIR_RETURN_IF_ERROR(ReceiveAll(fd, head, limit));
  KVASIR_ASSIGN_OR_RETURN(const std::size_t size, ParseHelloHead(head, self.to));
  std::vector<std::byte> body(size);
  KVASIR_RETURN_IF_ERROR(ReceiveAll(fd, body, limit));
  KVASIR_ASSIGN_OR_RETURN(const Hello peer, ParseHelloBody(body));
  if (peer.from != self.to || peer.to != self.from) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rank %d answered where rank %d was expected", peer.from, self.to));
  }
  return CheckSamePlan(self, peer);
}

}  // namespace

// One peer's part of a collective.
struct TcpMesh::Transfer {
  std::int32_t rank = 0;
  int fd = -1;
  MessageHead head;                // to be sent, and what the peer's must equal
  std::span<const std::byte> out;  // after the head
  std::span<std::byte> in;
  std::size_t sent = 0;  // head included
  std::size_t received = 0;
  MessageHead peer_head;

  [[nodiscard]] bool SendDone() const { return sent == sizeof(head) + out.size(); }
  [[nodiscard]] bool ReceiveDone() const { return received == sizeof(head) + in.size(); }

  // Both move as much as the system takes, without waiting.
  absl::Status Send() {
    while (!SendDone()) {
      const std::span<const std::byte> rest =
          sent < sizeof(head) ? BytesOf(head).subspan(sent) : out.subspan(sent - sizeof(head));
      const Progress progress = TrySend(fd, rest);
      if (progress.closed) return RankLost(rank, "the connection broke");
      if (progress.bytes == 0) break;
      sent += progress.bytes;
    }
    return absl::OkStatus();
  }

  absl::Status Receive() {
    while (!ReceiveDone()) {
      const std::span<std::byte> rest =
          received < sizeof(head) ? std::as_writable_bytes(std::span(&peer_head, 1)).subspan(received)
                                  : in.subspan(received - sizeof(head));
      const Progress progress = TryReceive(fd, rest);
      if (progress.closed) return RankLost(rank, "the connection was closed");
      if (progress.bytes == 0) break;
      received += progress.bytes;
      if (received == sizeof(head)) KVASIR_RETURN_IF_ERROR(CheckHead());
    }
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status CheckHead() const {
    if (std::memcmp(&peer_head, &head, sizeof(head)) == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "rank %d is at collective %d of group %d with %d bytes, this rank at %d of %d with %d; they are out "
        "of step",
        rank, peer_head.sequence, peer_head.group, peer_head.bytes, head.sequence, head.group, head.bytes));
  }
};

TcpMesh::TcpMesh(const MeshOptions& options) : options_(options), peers_(options.endpoints.size()) {}

absl::StatusOr<std::shared_ptr<TcpMesh>> TcpMesh::Connect(CommListener& listener,
                                                          const MeshOptions& options) {
  const Hello self{options.deployment, options.epoch,
                   options.plan_id,    static_cast<std::int32_t>(options.endpoints.size()),
                   options.rank,       options.rank};
  const WaitLimit limit{std::chrono::steady_clock::now() + options.connect_timeout, options.stop};
  // Expecting comes first: peers above may already be waiting for the answer while this rank dials those
  // below.
  KVASIR_ASSIGN_OR_RETURN(const std::shared_ptr<Meeting> meeting, listener.Expect(self));
  std::shared_ptr<TcpMesh> mesh(new TcpMesh(options));
  KVASIR_RETURN_IF_ERROR(mesh->DialBelow(self, limit));
  KVASIR_RETURN_IF_ERROR(mesh->AcceptAbove(*meeting, limit));
  return mesh;
}

absl::Status TcpMesh::DialBelow(const Hello& self, const WaitLimit& limit) {
  for (std::int32_t rank = 0; rank < options_.rank; ++rank) {
    absl::StatusOr<Socket> socket = DialTcp(options_.endpoints[static_cast<std::size_t>(rank)], limit);
    if (!socket.ok()) return About(rank, socket.status());
    Hello hello = self;
    hello.to = rank;
    if (const absl::Status status = Greet(socket->fd(), hello, limit); !status.ok())
      return About(rank, status);
    peers_[static_cast<std::size_t>(rank)] = *std::move(socket);
  }
  return absl::OkStatus();
}

absl::Status TcpMesh::AcceptAbove(Meeting& meeting, const WaitLimit& limit) {
  const std::size_t above = peers_.size() - static_cast<std::size_t>(options_.rank) - 1;
  for (std::size_t i = 0; i < above; ++i) {
    absl::StatusOr<Meeting::Arrival> arrival = meeting.Next(limit);
    if (absl::IsDeadlineExceeded(arrival.status())) {
      std::string missing;
      for (std::size_t rank = static_cast<std::size_t>(options_.rank) + 1; rank < peers_.size(); ++rank) {
        if (!peers_[rank].valid()) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      }
      return MakeError({.code = absl::StatusCode::kDeadlineExceeded,
                        .reason = reason::kDeadlineExpired,
                        .message = absl::StrFormat("rank %d waited %d ms for ranks %s; check their workers",
                                                   options_.rank, options_.connect_timeout.count(), missing),
                        .metadata = {{"missing_ranks", missing}}});
    }
    if (!arrival.ok()) return arrival.status();
    peers_[static_cast<std::size_t>(arrival->rank)] = std::move(arrival->socket);
  }
  return absl::OkStatus();
}

absl::Status TcpMesh::AllGather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all) {
  if (all.size() != mine.size() * group.members.size()) {
    return Fail(WrongResultSize(mine.size(), all.size(), group.members.size()));
  }
  KVASIR_RETURN_IF_ERROR(failure());
  const MessageHead head{group.id, 0, group.sequence++, mine.size()};
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const std::span<std::byte> part = all.subspan(i * mine.size(), mine.size());
    const std::int32_t rank = group.members[i];
    if (rank != options_.rank) {
      transfers.push_back({rank, peers_[static_cast<std::size_t>(rank)].fd(), head, mine, part, 0, 0, {}});
    } else if (!mine.empty()) {
      std::memmove(part.data(), mine.data(), mine.size());
    }
  }
  const absl::Status status = Exchange(transfers);
  return status.ok() ? status : Fail(status);
}

absl::Status TcpMesh::Exchange(std::vector<Transfer>& transfers) {
  const auto deadline = std::chrono::steady_clock::now() + options_.collective_timeout;
  std::vector<pollfd> waiting;
  while (true) {
    waiting.clear();
    for (Transfer& transfer : transfers) {
      KVASIR_RETURN_IF_ERROR(transfer.Send());
      KVASIR_RETURN_IF_ERROR(transfer.Receive());
      const int events = (transfer.SendDone() ? 0 : POLLOUT) | (transfer.ReceiveDone() ? 0 : POLLIN);
      if (events != 0) waiting.push_back({transfer.fd, static_cast<decltype(pollfd::events)>(events), 0});
    }
    if (waiting.empty()) return absl::OkStatus();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return CollectiveTimeout(options_.collective_timeout,
                               absl::StrFormat("%d peers are missing", waiting.size()));
    }
    if (poll(waiting.data(), waiting.size(), static_cast<int>(std::min(left, kAbortLatency).count())) == 0) {
      KVASIR_RETURN_IF_ERROR(failure());
    }
  }
}

absl::Status TcpMesh::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

absl::Status TcpMesh::Fail(const absl::Status& failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) {
    failure_ = failure;
    // Peers read the end of the stream and fail too. The descriptors stay open: other threads may poll them.
    for (const Socket& socket : peers_) {
      if (socket.valid()) (void)shutdown(socket.fd(), SHUT_RDWR);
    }
  }
  return failure_;
}

void TcpMesh::Abort(const std::string& reason) { (void)Fail(CollectiveAborted(reason)); }

absl::Status TcpMesh::CheckPeers() {
  KVASIR_RETURN_IF_ERROR(failure());
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].valid() && PeerClosed(peers_[rank].fd())) {
      return RankLost(static_cast<std::int64_t>(rank), "its connection is closed");
    }
  }
  return absl::OkStatus();
}

}  // namespace kvasir
