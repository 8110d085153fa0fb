#include "worker/service/run_step.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "worker/service/rank_threads.h"

namespace kvasir {
namespace {

bool IsAgreedFault(const absl::Status& status) { return absl::IsDataLoss(status); }

// Answers of the peers as they come.
class Answers {
 public:
  explicit Answers(std::size_t count) : answers_(count) {}

  void Set(std::size_t peer, absl::StatusOr<StepOutcome> answer) {
    const std::lock_guard lock(mutex_);
    answers_[peer] = std::move(answer);
    ++arrived_;
    changed_.notify_all();
  }

  const std::vector<std::optional<absl::StatusOr<StepOutcome>>>& WaitForAll() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_ == answers_.size(); });
    return answers_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  std::vector<std::optional<absl::StatusOr<StepOutcome>>> answers_;
};

// A peer that does not answer is a lost rank; what it says itself keeps its reason.
absl::Status AboutPeer(const std::string& peer, const StepPlan& step, const absl::Status& status) {
  TypedError error = ErrorOf(status);
  error.message = absl::StrFormat("step %d failed on worker %s: %s", step.step, peer, error.message);
  error.metadata["worker"] = peer;
  const bool silent =
      error.reason == reason::kWorkerUnreachable || error.code == absl::StatusCode::kDeadlineExceeded;
  if (silent) {
    error.code = absl::StatusCode::kUnavailable;
    error.reason = reason::kRankLost;
  }
  return MakeError(error);
}

absl::Status Differ(const std::string& peer, const StepPlan& step) {
  return absl::InternalError(
      absl::StrFormat("step %d: worker %s computed other tokens than rank 0", step.step, peer));
}

bool SameOutcome(const StepOutcome& a, const StepOutcome& b) {
  if (a.step != b.step || a.sequences.size() != b.sequences.size()) return false;
  for (std::size_t i = 0; i < a.sequences.size(); ++i) {
    const SequenceOutcome& x = a.sequences[i];
    const SequenceOutcome& y = b.sequences[i];
    if (x.id != y.id || x.drafted != y.drafted || x.accepted != y.accepted || x.emitted != y.emitted)
      return false;
  }
  return true;
}

// A worker that is gone explains everything that the others say.
absl::Status CauseOf(const absl::Status& local, const std::vector<absl::Status>& peers) {
  for (const absl::Status& status : peers) {
    if (ErrorOf(status).reason == reason::kRankLost && ErrorOf(status).metadata.contains("worker"))
      return status;
  }
  std::vector<absl::Status> all = {local};
  all.insert(all.end(), peers.begin(), peers.end());
  return FirstCause(all);
}

}  // namespace

absl::StatusOr<StepOutcome> RunStepEverywhere(const StepRunner& local,
                                              const std::vector<std::unique_ptr<StepPeer>>& peers,
                                              const StepPlan& step) {
  Answers answers(peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i]->Start(step, local.timeout, [&, i](absl::StatusOr<StepOutcome> answer) {
      // The local ranks may be waiting in a collective for ranks that will never come.
      if (!answer.ok() && !IsAgreedFault(answer.status()))
        local.abort("worker " + peers[i]->name() + " failed");
      answers.Set(i, std::move(answer));
    });
  }
  const absl::StatusOr<StepOutcome> mine = local.execute(step);
  if (!mine.ok() && !IsAgreedFault(mine.status())) {
    local.abort("step failed");
    for (const std::unique_ptr<StepPeer>& peer : peers) peer->Cancel();
  }
  const auto& theirs = answers.WaitForAll();
  std::vector<absl::Status> failures;
  bool all_faults = IsAgreedFault(mine.status());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const absl::StatusOr<StepOutcome>& answer = *theirs[i];
    all_faults = all_faults && IsAgreedFault(answer.status());
    if (!answer.ok()) {
      failures.push_back(AboutPeer(peers[i]->name(), step, answer.status()));
    } else if (mine.ok() && !SameOutcome(*mine, *answer)) {
      failures.push_back(Differ(peers[i]->name(), step));
    }
  }
  if (all_faults) return mine.status();
  const absl::Status cause = CauseOf(mine.status(), failures);
  if (cause.ok()) return mine;
  if (IsAgreedFault(cause))
    return absl::InternalError("ranks disagree about a fault: " + std::string(cause.message()));
  return cause;
}

}  // namespace kvasir
