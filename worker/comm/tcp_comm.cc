#include "worker/comm/tcp_comm.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

constexpr std::uint32_t kTensorGroup = 1;
constexpr std::uint32_t kContextGroup = 2;

class TcpComm final : public Communicator {
 public:
  TcpComm(std::shared_ptr<TcpMesh> mesh, TcpMesh::Group group, std::int64_t rank)
      : mesh_(std::move(mesh)), group_(std::move(group)), rank_(rank) {}
  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(group_.members.size());
  }
  absl::Status AllGather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return mesh_->AllGather(group_, mine, all);
  }
  void Abort(const std::string& reason) override { mesh_->Abort(reason); }

 private:
  const std::shared_ptr<TcpMesh> mesh_;
  TcpMesh::Group group_;
  const std::int64_t rank_;
};

// Ranks first .. first + count - 1.
std::vector<std::int32_t> Consecutive(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(static_cast<std::int32_t>(first + i));
  return ranks;
}

}  // namespace

absl::StatusOr<RankComms> MakeTcpComms(CommListener& listener, const MeshOptions& options, std::int64_t dcp) {
  const auto ranks = static_cast<std::int64_t>(options.endpoints.size());
  KVASIR_CHECK(dcp > 0 && ranks % dcp == 0);
  KVASIR_ASSIGN_OR_RETURN(std::shared_ptr<TcpMesh> mesh, TcpMesh::Connect(listener, options));
  const std::int64_t rank = options.rank;
  RankComms comms;
  comms.tensor =
      std::make_unique<TcpComm>(mesh, TcpMesh::Group{kTensorGroup, Consecutive(0, ranks), 0}, rank);
  comms.context = std::make_unique<TcpComm>(
      mesh, TcpMesh::Group{kContextGroup, Consecutive(rank - rank % dcp, dcp), 0}, rank % dcp);
  comms.mesh = std::move(mesh);
  return comms;
}

}  // namespace kvasir
