// The connections of one rank to all others of its deployment and epoch, and collectives over them. Rank r
// dials the ranks below it and is dialled by those above. Fail-stop: after the first failure every later call
// returns it, and the peers find their connections closed.
//
//   message := group:u32 0:u32 sequence:u64 bytes:u64 payload{bytes}     (host order; ranks agree on their
//   build)
//
// `group` tells the collectives of one group from another's and `sequence` counts them, so that ranks out of
// step end with an error instead of wrong bytes.
#ifndef KVASIR_WORKER_COMM_TCP_MESH_H_
#define KVASIR_WORKER_COMM_TCP_MESH_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "worker/comm/comm_listener.h"
#include "worker/comm/socket.h"

namespace kvasir {

struct MeshOptions {
  std::string deployment;
  Epoch epoch;
  std::string plan_id;
  std::int32_t rank = 0;
  std::vector<CommEndpoint> endpoints;                   // by rank: the listener of the worker that hosts it
  std::chrono::milliseconds connect_timeout{10'000};     // for the whole mesh
  std::chrono::milliseconds collective_timeout{30'000};  // for each collective
  std::stop_token stop;                                  // gives up connecting
};

class TcpMesh {
 public:
  // Meets all other ranks. RANKS_DISAGREE where one has another plan; Unavailable where one's worker is not
  // there; DeadlineExceeded naming the ranks that did not come.
  static absl::StatusOr<std::shared_ptr<TcpMesh>> Connect(CommListener& listener, const MeshOptions& options);
  TcpMesh(const TcpMesh&) = delete;
  TcpMesh& operator=(const TcpMesh&) = delete;

  // One group's collectives: `members` are ranks, ascending, this one among them.
  struct Group {
    std::uint32_t id = 0;
    std::vector<std::int32_t> members;
    std::uint64_t sequence = 0;  // of the next collective
  };
  // As Communicator::AllGather. One thread at a time.
  absl::Status AllGather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all);

  // Any thread.
  void Abort(const std::string& reason);
  // The first failure, or RANK_LOST if a peer's connection is closed. Any thread; cheap; does not read.
  absl::Status CheckPeers();

 private:
  explicit TcpMesh(const MeshOptions& options);
  absl::Status DialBelow(const Hello& self, const WaitLimit& limit);
  absl::Status AcceptAbove(Meeting& meeting, const WaitLimit& limit);
  struct Transfer;
  absl::Status Exchange(std::vector<Transfer>& transfers);
  absl::Status Fail(const absl::Status& failure);
  absl::Status failure();

  const MeshOptions options_;
  std::vector<Socket> peers_;  // by rank; this rank's own is empty
  std::mutex mutex_;
  absl::Status failure_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_TCP_MESH_H_
