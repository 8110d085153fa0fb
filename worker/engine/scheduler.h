// Rank 0's host logic: sequences, block pools, admission of the worst case, and which step comes next. Pure
// host code: no backend, no threads, no clock.
#ifndef KVASIR_WORKER_ENGINE_SCHEDULER_H_
#define KVASIR_WORKER_ENGINE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

struct SequenceRequest {
  std::vector<std::int32_t> prompt = {};  // at least one token
  std::int64_t max_tokens = 0;            // at least 1
  std::vector<std::int32_t> stop_tokens = {};
  bool speculate = true;  // false: plain decode (the plan may still have a draft)
  SamplingParameters sampling = {};
};

struct SequenceProgress {
  SequenceId id;
  std::vector<std::int32_t> tokens = {};  // new since the last report
  std::vector<float> logprobs = {};       // of `tokens`, where the request wants them; else empty
  std::int64_t drafted = 0;               // of this step: verified
  std::int64_t accepted = 0;              // of those, the ones among `tokens`
  bool finished = false;
};

class Scheduler {
 public:
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const Plan& plan, std::string plan_id, Epoch epoch,
                                                           std::int64_t vocab);
  virtual ~Scheduler() = default;

  // What Join refuses of this request whatever else runs: InvalidArgument with field and limit. On any
  // thread.
  [[nodiscard]] virtual absl::Status CheckRequest(const SequenceRequest& request) const = 0;
  // Reserves prompt + max_tokens in every pool. ResourceExhausted names the pool and the shortfall in blocks,
  // or that max_requests sequences run already; InvalidArgument for a request that could never be admitted
  // (field and limit).
  virtual absl::StatusOr<SequenceId> Join(const SequenceRequest& request) = 0;
  // Join refused `request` for want of blocks, and it waits: the next step moves the blocks of one parent
  // where that helps to admit it (compaction.h). Asked again before every step while it waits.
  virtual void MakeRoomFor(const SequenceRequest& request) = 0;
  // Frees everything. NotFound for an unknown sequence.
  virtual absl::Status Cancel(SequenceId id) = 0;

  // The next step, or nullopt when there is nothing to do. The three kinds take turns, those without work are
  // skipped: a prefill chunk (of the oldest prompt that is not done), the sequences that speculate, those
  // that do not. So between two steps of a running sequence there is at most one chunk, however long the
  // prompts are that wait. Each step is followed by Apply or FailStep before the next one is asked for.
  virtual std::optional<StepPlan> NextStep() = 0;
  // Takes the outcome of the step given last; finished sequences free their blocks. A stop token is reported
  // as the last token. Sequences cancelled meanwhile are left out. InvalidArgument, changing nothing, for an
  // outcome that does not fit the step; FailedPrecondition if no step is out.
  virtual absl::StatusOr<std::vector<SequenceProgress>> Apply(const StepOutcome& outcome) = 0;
  // The step given last ran and failed (RankEngine::Execute said DataLoss): its sequences are cancelled and
  // returned, and the next step has the next number.
  virtual std::vector<SequenceId> FailStep() = 0;

  [[nodiscard]] virtual std::int64_t running() const = 0;
  [[nodiscard]] virtual std::int64_t free_parents() const = 0;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_SCHEDULER_H_
