// Another worker's ExecuteStep over gRPC.
#ifndef KVASIR_WORKER_SERVICE_PEER_CLIENT_H_
#define KVASIR_WORKER_SERVICE_PEER_CLIENT_H_

#include <memory>
#include <string>

#include "worker/service/step_peer.h"

namespace kvasir {

// Errors of calls: the peer's own; PEER_UNREACHABLE or DEADLINE_EXPIRED where it does not answer.
[[nodiscard]] std::unique_ptr<StepPeer> MakePeerClient(const std::string& address,
                                                       const std::string& deployment);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_PEER_CLIENT_H_
