// Communicators over a TcpMesh.
#ifndef KVASIR_WORKER_COMM_TCP_COMM_H_
#define KVASIR_WORKER_COMM_TCP_COMM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/comm/comm_listener.h"
#include "worker/comm/rank_comms.h"
#include "worker/comm/tcp_mesh.h"

namespace kvasir {

// Connects the rank and splits off its DCP group. Errors as TcpMesh::Connect. `dcp` divides the number of
// endpoints.
[[nodiscard]] absl::StatusOr<RankComms> MakeTcpComms(CommListener& listener, const MeshOptions& options,
                                                     std::int64_t dcp);

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_TCP_COMM_H_
