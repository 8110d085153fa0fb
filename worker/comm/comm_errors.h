// The failures of collectives, worded once for threads and TCP.
#ifndef KVASIR_WORKER_COMM_COMM_ERRORS_H_
#define KVASIR_WORKER_COMM_COMM_ERRORS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace kvasir {

// Unavailable, RANK_LOST, metadata `rank`.
[[nodiscard]] absl::Status RankLost(std::int64_t rank, const std::string& what);
// DeadlineExceeded, DEADLINE_EXPIRED.
[[nodiscard]] absl::Status CollectiveTimeout(std::chrono::milliseconds timeout, const std::string& progress);
// Cancelled, CALL_CANCELLED.
[[nodiscard]] absl::Status CollectiveAborted(const std::string& reason);
// InvalidArgument: the ranks called with unequal sizes, or are at different collectives.
[[nodiscard]] absl::Status UnequalParts(std::size_t first, std::size_t other);
// InvalidArgument: `all` is not ranks * mine.
[[nodiscard]] absl::Status WrongResultSize(std::size_t mine, std::size_t all, std::size_t ranks);
// FailedPrecondition, RANKS_DISAGREE, metadata rank, fact, value, others.
[[nodiscard]] absl::Status RanksDisagree(std::int64_t rank, const std::string& fact, const std::string& value,
                                         const std::string& others);

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_COMM_ERRORS_H_
