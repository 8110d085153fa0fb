#include "worker/comm/comm_errors.h"

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {

absl::Status RankLost(std::int64_t rank, const std::string& what) {
  return MakeError({.code = absl::StatusCode::kUnavailable,
                    .reason = reason::kRankLost,
                    .message = absl::StrFormat("rank %d is gone: %s; apply the plan again", rank, what),
                    .metadata = {{"rank", std::to_string(rank)}}});
}

absl::Status CollectiveTimeout(std::chrono::milliseconds timeout, const std::string& progress) {
  return MakeError({.code = absl::StatusCode::kDeadlineExceeded,
                    .reason = reason::kDeadlineExpired,
                    .message = absl::StrFormat("a collective did not complete within %d ms: %s",
                                               timeout.count(), progress),
                    .metadata = {{"timeout_ms", std::to_string(timeout.count())}}});
}

absl::Status CollectiveAborted(const std::string& reason) {
  return MakeError({.code = absl::StatusCode::kCancelled,
                    .reason = reason::kCallCancelled,
                    .message = "collectives were aborted: " + reason});
}

absl::Status UnequalParts(std::size_t first, std::size_t other) {
  return absl::InvalidArgumentError(
      absl::StrFormat("ranks gave %d and %d bytes to one collective; they are out of step", first, other));
}

absl::Status WrongResultSize(std::size_t mine, std::size_t all, std::size_t ranks) {
  return absl::InvalidArgumentError(absl::StrFormat("the result has %d bytes; %d ranks of %d bytes need %d",
                                                    all, ranks, mine, ranks * mine));
}

absl::Status RanksDisagree(std::int64_t rank, const std::string& fact, const std::string& value,
                           const std::string& others) {
  return MakeError(
      {.code = absl::StatusCode::kFailedPrecondition,
       .reason = reason::kRanksDisagree,
       .message = absl::StrFormat(
           "rank %d has %s = %s, the others have %s; nothing was allocated; run the same build and settings, "
           "over the same files, on every node",
           rank, fact, value, others),
       .metadata = {{"rank", std::to_string(rank)}, {"fact", fact}, {"value", value}, {"others", others}}});
}

}  // namespace kvasir
