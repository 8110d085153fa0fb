// Collectives among ranks that are threads of one process: a meeting point under one mutex.
#ifndef KVASIR_WORKER_COMM_THREAD_COMM_H_
#define KVASIR_WORKER_COMM_THREAD_COMM_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "worker/comm/rank_comms.h"

namespace kvasir {

// One entry per rank, to be used by one thread each. `dcp` divides `ranks`. A collective that does not
// complete within `timeout` fails on every rank, and so does everything after it: ranks out of step cannot
// recover.
[[nodiscard]] std::vector<RankComms> MakeThreadComms(std::int64_t ranks, std::int64_t dcp,
                                                     std::chrono::milliseconds timeout);

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_THREAD_COMM_H_
