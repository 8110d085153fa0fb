// Made-up sequences for a preflight, the same on every rank: their prompts lie in the cache, and every pass
// of a plan can run over them.
#ifndef KVASIR_WORKER_SERVICE_PREFLIGHT_SEQUENCES_H_
#define KVASIR_WORKER_SERVICE_PREFLIGHT_SEQUENCES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/pass_runner.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {

class PreflightSequences {
 public:
  // Prefills them, as many as the arena holds and at most max_requests. `options` outlives the object.
  static absl::StatusOr<PreflightSequences> Fill(const RankEngineOptions& options, PassRunner& passes);

  [[nodiscard]] const std::vector<StepSequence>& all() const { return sequences_; }
  // Of the graph's pass over as many of them as it has requests. It may run several times over: nothing is
  // carried on.
  [[nodiscard]] PassMetadata MetadataOf(const PlanGraph& graph) const;

 private:
  explicit PreflightSequences(const RankEngineOptions& options)
      : options_(&options),
        builder_(options.plan, options.place, options.unused_table_entry, IsChain(options)) {}
  absl::Status Prefill(PassRunner& passes, StepSequence& sequence) const;
  [[nodiscard]] SequenceRows RowsOf(Pass pass, const StepSequence& sequence) const;
  [[nodiscard]] std::vector<std::int32_t> TokensFrom(std::int64_t first, std::int64_t count) const;

  const RankEngineOptions* options_;
  MetadataBuilder builder_;
  std::vector<StepSequence> sequences_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_PREFLIGHT_SEQUENCES_H_
