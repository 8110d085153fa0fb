// Runs one pass at a time on a rank: checks its metadata, brings it to the device, replays the captured graph
// of its shape or runs the launch list, and collects faults.
#ifndef KVASIR_WORKER_ENGINE_PASS_RUNNER_H_
#define KVASIR_WORKER_ENGINE_PASS_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/backend.h"
#include "worker/engine/graph_registry.h"
#include "worker/engine/model_pass.h"
#include "worker/engine/pass_buffers.h"
#include "worker/engine/rank_engine.h"

namespace kvasir {

class PassRunner {
 public:
  // Makes buffers, weights and scratch, and captures the plan's graphs if the options say so. `backend` and
  // `options` outlive the runner.
  static absl::StatusOr<std::unique_ptr<PassRunner>> Create(Backend& backend,
                                                            const RankEngineOptions& options,
                                                            std::byte* arena);

  // The shape that `requests` requests of `query_rows` rows run in: padded to the plan's bucket if it has
  // one.
  [[nodiscard]] PassShape ShapeFor(Pass pass, std::int64_t query_rows, std::int64_t requests) const;

  // Forgets earlier faults; before each step.
  absl::Status BeginStep();
  // `wants_logits` is false for a prefill chunk that nothing is sampled from: its head is not computed.
  absl::Status Run(const PassMetadata& metadata, bool wants_logits = true);
  // The same pass without its graph, by `backend`, which shares this rank's memory and communicators: the
  // rank's own (eager), or one with the reference kernels. For preflight.
  absl::Status RunEagerly(Backend& backend, const PassMetadata& metadata);
  // Of the pass run last: [rows], and for a draft_block [requests, query_rows], of a chain too.
  absl::StatusOr<std::vector<std::int32_t>> ReadNextIds(const PassShape& shape);
  absl::StatusOr<std::vector<std::int32_t>> ReadDrafted(const PassShape& shape);
  // Of the draft_block run last, if the draft has a confidence head: [requests, N].
  absl::StatusOr<std::vector<float>> ReadConfidences(const PassShape& shape);
  // Its logits [rows, vocab] from row `first` on; of a target pass.
  absl::StatusOr<std::vector<float>> ReadLogits(std::int64_t first, std::int64_t rows);
  // Of the draft_block run last, with the Markov bias: rows first .. first + rows - 1 of a request.
  absl::StatusOr<std::vector<float>> ReadDraftLogits(const PassShape& shape, std::int64_t request,
                                                     std::int64_t first, std::int64_t rows);
  // The first pass since BeginStep that met NaN or +inf.
  [[nodiscard]] std::optional<Pass> fault() const { return fault_; }

  [[nodiscard]] RankMeasurement measurement() const;

 private:
  PassRunner(Backend& backend, const RankEngineOptions& options, PassBuffers buffers)
      : backend_(backend), options_(options), buffers_(std::move(buffers)) {}
  [[nodiscard]] LaunchList BuildList(const PassShape& shape, bool wants_logits) const;
  absl::Status Launch(const PassMetadata& metadata, bool wants_logits);
  absl::Status CollectFault(Pass pass);
  absl::Status Observe(const PassMetadata& metadata, bool wants_logits);
  // Whether the pass left its rows as [query_rows, requests] (PassInputs).
  [[nodiscard]] bool IsTurned(Pass pass) const { return pass == Pass::kDraftBlock && IsChain(options_); }
  absl::StatusOr<std::vector<std::int32_t>> ReadTokens(const std::int32_t* from, std::int64_t count);

  Backend& backend_;
  const RankEngineOptions& options_;
  PassBuffers buffers_;
  std::unique_ptr<RankModel> model_;
  GraphRegistry graphs_;
  std::optional<Pass> fault_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_PASS_RUNNER_H_
