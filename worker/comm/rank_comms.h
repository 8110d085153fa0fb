// What one rank of a deployment uses to talk to the others: a communicator over all ranks, and one over its
// DCP group (`dcp` consecutive ranks). Both share one fate: aborting either fails both, on this rank and on
// its peers.
#ifndef KVASIR_WORKER_COMM_RANK_COMMS_H_
#define KVASIR_WORKER_COMM_RANK_COMMS_H_

#include <memory>

#include "worker/comm/tcp_mesh.h"
#include "worker/engine/communicator.h"

namespace kvasir {

struct RankComms {
  std::unique_ptr<Communicator> tensor;
  std::unique_ptr<Communicator> context;
  std::shared_ptr<TcpMesh> mesh;  // null where all ranks are threads of this process
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_RANK_COMMS_H_
