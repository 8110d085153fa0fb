#include "worker/service/run_step.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

bool IsAgreedFault(const absl::Status& status) { return absl::IsDataLoss(status); }

// What the workers say, as it comes. The first failure explains the others: it aborts them.
class Answers {
 public:
  explicit Answers(std::size_t peers) : peers_(peers) {}

  void SetPeer(std::size_t peer, absl::StatusOr<StepOutcome> answer) {
    const std::lock_guard lock(mutex_);
    peers_[peer] = std::move(answer);
    ++arrived_;
    changed_.notify_all();
  }
  // `unreachable`: the worker does not answer at all. That explains even what came before: others may have
  // noticed first.
  void NoteFailure(const absl::Status& failure, bool unreachable) {
    const std::lock_guard lock(mutex_);
    if (!cause_.ok() && (!unreachable || unreachable_)) return;
    cause_ = failure;
    unreachable_ = unreachable;
  }

  const std::vector<std::optional<absl::StatusOr<StepOutcome>>>& WaitForPeers() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_ == peers_.size(); });
    return peers_;
  }
  [[nodiscard]] absl::Status cause() const {
    const std::lock_guard lock(mutex_);
    return cause_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  std::vector<std::optional<absl::StatusOr<StepOutcome>>> peers_;
  absl::Status cause_;
  bool unreachable_ = false;
};

// Not a fault that all ranks agree on: the plan is lost.
bool IsFailure(const absl::Status& status) { return !status.ok() && !IsAgreedFault(status); }

// The failure as clients are told. One that does not answer, or gave up, is a lost rank; what it says
// otherwise keeps its reason.
absl::Status Explained(const StepPlan& step, const std::string& worker, const absl::Status& status) {
  if (!IsFailure(status)) return status;
  TypedError error = ErrorOf(status);
  error.message = absl::StrFormat("step %d failed%s: %s", step.step,
                                  worker.empty() ? "" : " on worker " + worker, error.message);
  if (!worker.empty()) error.metadata["worker"] = worker;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsCancelled(status)) {
    error.code = absl::StatusCode::kUnavailable;
    error.reason = reason::kRankLost;
  }
  return MakeError(error);
}

absl::Status Differ(const std::string& peer, const StepPlan& step) {
  return absl::InternalError(
      absl::StrFormat("step %d: worker %s came to another outcome than rank 0", step.step, peer));
}

bool SameOutcome(const StepOutcome& a, const StepOutcome& b) {
  if (a.step != b.step || a.sequences.size() != b.sequences.size()) return false;
  for (std::size_t i = 0; i < a.sequences.size(); ++i) {
    const SequenceOutcome& x = a.sequences[i];
    const SequenceOutcome& y = b.sequences[i];
    if (x.id != y.id || x.drafted != y.drafted || x.accepted != y.accepted || x.emitted != y.emitted ||
        x.logprobs != y.logprobs) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<StepOutcome> RunStepEverywhere(const StepRunner& local,
                                              const std::vector<std::unique_ptr<StepPeer>>& peers,
                                              const StepPlan& step) {
  Answers answers(peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i]->Start(step, local.timeout, [&, i](absl::StatusOr<StepOutcome> answer) {
      if (IsFailure(answer.status())) {
        answers.NoteFailure(Explained(step, peers[i]->name(), answer.status()),
                            ReasonOf(answer.status()) == reason::kPeerUnreachable);
        // The local ranks may be waiting in a collective for ranks that will never come.
        local.abort("worker " + peers[i]->name() + " failed");
      }
      answers.SetPeer(i, std::move(answer));
    });
  }
  absl::StatusOr<StepOutcome> mine = local.execute(step);
  if (IsFailure(mine.status())) {
    answers.NoteFailure(Explained(step, "", mine.status()), /*unreachable=*/false);
    local.abort("step failed");
    for (const std::unique_ptr<StepPeer>& peer : peers) peer->Cancel();
  }
  const auto& theirs = answers.WaitForPeers();
  if (absl::Status cause = answers.cause(); !cause.ok()) return cause;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const absl::StatusOr<StepOutcome>& answer = *theirs[i];
    // A fault is agreed on by all ranks, or by none.
    const bool same = answer.ok() && mine.ok() ? SameOutcome(*mine, *answer) : answer.ok() == mine.ok();
    if (!same) return Differ(peers[i]->name(), step);
  }
  return mine;
}

}  // namespace kvasir
