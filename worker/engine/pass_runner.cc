#include "worker/engine/pass_runner.h"

#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/engine/check_metadata.h"

namespace kvasir {

absl::StatusOr<std::unique_ptr<PassRunner>> PassRunner::Create(Backend& backend,
                                                               const RankEngineOptions& options,
                                                               std::byte* arena) {
  PassBufferSizes sizes{.vocab = options.target.vocab};
  if (options.draft.has_value() && options.draft->draft.has_value()) {
    sizes.tap_columns =
        static_cast<std::int64_t>(options.draft->draft->target_taps.size()) * options.target.hidden;
    sizes.chain = IsChain(options);
    if (sizes.chain) sizes.tap_columns = options.target.hidden;
  }
  KVASIR_ASSIGN_OR_RETURN(PassBuffers buffers, PassBuffers::Create(backend, options.plan, sizes));
  std::unique_ptr<PassRunner> runner(new PassRunner(backend, options, std::move(buffers)));
  RankModelOptions model{.plan = &options.plan,
                         .place = options.place,
                         .target = &options.target,
                         .draft = options.draft.has_value() ? &*options.draft : nullptr,
                         .weight_seed = options.weight_seed,
                         .weights = options.weights,
                         .rows_max = runner->buffers_.rows_max(),
                         .arena = arena};
  KVASIR_ASSIGN_OR_RETURN(runner->model_, MakeRankModel(backend, model));
  if (!options.use_graphs) return runner;
  const auto build = [&runner](const PassShape& shape) { return runner->BuildList(shape, true); };
  KVASIR_ASSIGN_OR_RETURN(runner->graphs_, GraphRegistry::Capture(backend, options.plan, build));
  return runner;
}

PassShape PassRunner::ShapeFor(Pass pass, std::int64_t query_rows, std::int64_t requests) const {
  const std::optional<std::int64_t> bucket = BucketFor(options_.plan, pass, query_rows, requests);
  return PassShape{.pass = pass, .requests = bucket.value_or(requests), .query_rows = query_rows};
}

absl::Status PassRunner::BeginStep() {
  fault_.reset();
  const std::int32_t none = 0;
  return backend_.Write(reinterpret_cast<std::byte*>(buffers_.outputs().fault),
                        std::as_bytes(std::span(&none, 1)));
}

absl::Status PassRunner::Run(const PassMetadata& metadata, bool wants_logits) {
  KVASIR_RETURN_IF_ERROR(CheckMetadata(options_.plan, options_.target.vocab, metadata, IsChain(options_)));
  KVASIR_RETURN_IF_ERROR(buffers_.Upload(backend_, metadata));
  KVASIR_RETURN_IF_ERROR(Launch(metadata, wants_logits));
  KVASIR_RETURN_IF_ERROR(CollectFault(metadata.shape.pass));
  if (metadata.shape.pass == Pass::kDraftBlock && options_.observe_confidences) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<float> confidences, ReadConfidences(metadata.shape));
    options_.observe_confidences(confidences);
  }
  return options_.observe_pass ? Observe(metadata, wants_logits) : absl::OkStatus();
}

absl::Status PassRunner::RunEagerly(Backend& backend, const PassMetadata& metadata) {
  KVASIR_RETURN_IF_ERROR(CheckMetadata(options_.plan, options_.target.vocab, metadata, IsChain(options_)));
  KVASIR_RETURN_IF_ERROR(buffers_.Upload(backend_, metadata));
  KVASIR_RETURN_IF_ERROR(backend.Run(BuildList(metadata.shape, /*wants_logits=*/true)));
  KVASIR_RETURN_IF_ERROR(CollectFault(metadata.shape.pass));
  return options_.observe_pass ? Observe(metadata, /*wants_logits=*/true) : absl::OkStatus();
}

LaunchList PassRunner::BuildList(const PassShape& shape, bool wants_logits) const {
  PassOutputs out = buffers_.outputs();
  if (!wants_logits) out.logits = nullptr;
  return model_->Build(shape, buffers_.InputsAt(shape), out);
}

absl::Status PassRunner::Launch(const PassMetadata& metadata, bool wants_logits) {
  if (graphs_.Has(metadata.shape)) return graphs_.Replay(metadata.shape, BehavioursOf(metadata));
  return backend_.Run(BuildList(metadata.shape, wants_logits));
}

absl::Status PassRunner::CollectFault(Pass pass) {
  std::int32_t fault = 0;
  KVASIR_RETURN_IF_ERROR(backend_.Read(std::as_writable_bytes(std::span(&fault, 1)),
                                       reinterpret_cast<const std::byte*>(buffers_.outputs().fault)));
  if (fault != 0 && !fault_.has_value()) fault_ = pass;
  return absl::OkStatus();
}

absl::Status PassRunner::Observe(const PassMetadata& metadata, bool wants_logits) {
  const PassShape& shape = metadata.shape;
  std::vector<float> logits;
  if (wants_logits && shape.pass != Pass::kDraftContext) {
    for (std::int64_t request = 0; request < shape.requests; ++request) {
      KVASIR_ASSIGN_OR_RETURN(const std::vector<float> rows,
                              ReadDraftLogits(shape, request, 0, shape.query_rows));
      logits.insert(logits.end(), rows.begin(), rows.end());
    }
  }
  options_.observe_pass(metadata, logits);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::int32_t>> PassRunner::ReadNextIds(const PassShape& shape) {
  return ReadTokens(buffers_.outputs().next_ids, shape.rows());
}

absl::StatusOr<std::vector<std::int32_t>> PassRunner::ReadDrafted(const PassShape& shape) {
  KVASIR_ASSIGN_OR_RETURN(std::vector<std::int32_t> drafted,
                          ReadTokens(buffers_.outputs().drafted, shape.rows()));
  if (!IsTurned(shape.pass)) return drafted;
  std::vector<std::int32_t> by_request;
  by_request.reserve(drafted.size());
  for (std::int64_t request = 0; request < shape.requests; ++request) {
    for (std::int64_t row = 0; row < shape.query_rows; ++row) {
      by_request.push_back(drafted[static_cast<std::size_t>(row * shape.requests + request)]);
    }
  }
  return by_request;
}

absl::StatusOr<std::vector<float>> PassRunner::ReadConfidences(const PassShape& shape) {
  std::vector<float> confidences(static_cast<std::size_t>(shape.rows()));
  KVASIR_RETURN_IF_ERROR(backend_.Read(std::as_writable_bytes(std::span(confidences)),
                                       reinterpret_cast<const std::byte*>(buffers_.outputs().confidences)));
  return confidences;
}

absl::StatusOr<std::vector<float>> PassRunner::ReadLogits(std::int64_t first, std::int64_t rows) {
  const std::int64_t vocab = options_.target.vocab;
  std::vector<float> logits(static_cast<std::size_t>(rows * vocab));
  const float* from = buffers_.outputs().logits + first * vocab;
  KVASIR_RETURN_IF_ERROR(
      backend_.Read(std::as_writable_bytes(std::span(logits)), reinterpret_cast<const std::byte*>(from)));
  return logits;
}

absl::StatusOr<std::vector<float>> PassRunner::ReadDraftLogits(const PassShape& shape, std::int64_t request,
                                                               std::int64_t first, std::int64_t rows) {
  if (!IsTurned(shape.pass)) return ReadLogits(request * shape.query_rows + first, rows);
  std::vector<float> logits;
  for (std::int64_t row = first; row < first + rows; ++row) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<float> one, ReadLogits(row * shape.requests + request, 1));
    logits.insert(logits.end(), one.begin(), one.end());
  }
  return logits;
}

absl::StatusOr<std::vector<std::int32_t>> PassRunner::ReadTokens(const std::int32_t* from,
                                                                 std::int64_t count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  KVASIR_RETURN_IF_ERROR(
      backend_.Read(std::as_writable_bytes(std::span(tokens)), reinterpret_cast<const std::byte*>(from)));
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < options_.target.vocab) continue;
    return absl::InternalError(
        absl::StrFormat("the backend chose token %d of a vocabulary of %d", token, options_.target.vocab));
  }
  return tokens;
}

RankMeasurement PassRunner::measurement() const {
  return RankMeasurement{.arena_bytes = options_.plan.arena_bytes,
                         .weight_bytes = model_->weight_bytes(),
                         .scratch_bytes = model_->scratch_bytes() + buffers_.bytes(),
                         .graphs = graphs_.size()};
}

}  // namespace kvasir
