#include "worker/service/preflight.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/engine/pass_runner.h"
#include "worker/engine/step_metadata.h"
#include "worker/service/preflight_sequences.h"
#include "worker/service/saved_states.h"

namespace kvasir {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::int64_t kShrunkMlpPerRank = 16;
constexpr std::int64_t kShrunkVocabPerRank = 512;
constexpr std::size_t kSnapshotBytesMax = std::size_t{256} << 20;

absl::Status Failed(std::int32_t rank, std::string_view what) {
  return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                    .reason = reason::kPreflightFailed,
                    .message = absl::StrFormat("rank %d: %s", rank, what),
                    .metadata = {{"rank", std::to_string(rank)}}});
}

// Sends patterns of growing size around; the bytes that this rank saw.
absl::StatusOr<std::int64_t> CheckCollectives(std::int32_t rank, Communicator& tensor) {
  std::int64_t bytes = 0;
  const auto ranks = static_cast<std::size_t>(tensor.size());
  const auto pattern = [](std::size_t from, std::size_t at) {
    return static_cast<std::byte>(from * 31 + at * 7 + 1);
  };
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 18}) {
    std::vector<std::byte> mine(size);
    for (std::size_t at = 0; at < size; ++at) mine[at] = pattern(static_cast<std::size_t>(rank), at);
    std::vector<std::byte> all(size * ranks);
    KVASIR_RETURN_IF_ERROR(tensor.AllGather(mine, all));
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (all[at] != pattern(at / size, at % size)) {
        return Failed(rank, absl::StrFormat("byte %d of a collective of %d bytes from rank %d is wrong",
                                            at % size, size, at / size));
      }
    }
    bytes += static_cast<std::int64_t>(all.size());
  }
  return bytes;
}

// Whether all ranks answer yes.
absl::StatusOr<bool> AllAgree(Communicator& tensor, bool mine) {
  const auto vote = static_cast<std::byte>(mine ? 1 : 0);
  std::vector<std::byte> votes(static_cast<std::size_t>(tensor.size()));
  KVASIR_RETURN_IF_ERROR(tensor.AllGather(std::span(&vote, 1), votes));
  return std::all_of(votes.begin(), votes.end(), [](std::byte b) { return b == std::byte{1}; });
}

std::int64_t RoundDown(std::int64_t value, std::int64_t multiple) { return value / multiple * multiple; }

// One rank's run of every graph.
class Runner {
 public:
  Runner(const PrepareSpec& spec, std::int32_t rank, Communicator& tensor, const PreflightBackends& backends)
      : spec_(spec), rank_(rank), tensor_(tensor), backends_(backends) {}

  absl::StatusOr<RankPreflight> Run();

 private:
  absl::Status Build();
  absl::Status BuildOver(const ModelDescription& target, const std::optional<ModelDescription>& draft);
  absl::Status RunGraph(const PlanGraph& graph);
  absl::Status Compare(const PlanGraph& graph, const PassMetadata& metadata);
  // A number that stands for the bytes of all parents in use.
  absl::StatusOr<std::size_t> ArenaFingerprint() const;

  const PrepareSpec& spec_;
  const std::int32_t rank_;
  Communicator& tensor_;
  const PreflightBackends& backends_;
  RankEngineOptions options_;
  std::unique_ptr<DeviceMemory> arena_;
  std::unique_ptr<PassRunner> passes_;
  std::optional<PreflightSequences> sequences_;
  SavedStates states_;         // of sequences_, after their prompts
  std::vector<float> logits_;  // of the pass run last
  RankPreflight result_;
};

absl::StatusOr<RankPreflight> Runner::Run() {
  KVASIR_ASSIGN_OR_RETURN(result_.collective_bytes, CheckCollectives(rank_, tensor_));
  KVASIR_RETURN_IF_ERROR(Build());
  KVASIR_ASSIGN_OR_RETURN(sequences_, PreflightSequences::Fill(options_, *passes_));
  KVASIR_ASSIGN_OR_RETURN(
      states_, SavedStates::Save(*backends_.device, spec_.plan, arena_->data(), sequences_->all()));
  for (const PlanGraph& graph : spec_.plan.graphs) KVASIR_RETURN_IF_ERROR(RunGraph(graph));
  for (const ComparedRows& compared : result_.comparisons) {
    if (compared.error_ppb <= compared.tolerance_ppb && compared.replay_equals_eager) continue;
    return Failed(rank_,
                  compared.replay_equals_eager
                      ? absl::StrFormat("rows of %s are %d ppb from the reference; at most %d are accepted",
                                        PassName(compared.pass), compared.error_ppb, compared.tolerance_ppb)
                      : absl::StrFormat("replaying %s gives other bits than running it eagerly",
                                        PassName(compared.pass)));
  }
  return std::move(result_);
}

absl::Status Runner::BuildOver(const ModelDescription& target, const std::optional<ModelDescription>& draft) {
  passes_.reset();
  options_.plan = spec_.plan;
  options_.plan_id = spec_.key.plan_id;
  options_.epoch = spec_.key.epoch;
  options_.place = {rank_, spec_.plan.topology};
  options_.target = target;
  options_.draft = draft;
  options_.weight_seed = spec_.weight_seed;
  options_.observe_pass = [this](const PassMetadata&, std::span<const float> logits) {
    logits_.assign(logits.begin(), logits.end());
  };
  KVASIR_ASSIGN_OR_RETURN(passes_, PassRunner::Create(*backends_.device, options_, arena_->data()));
  return absl::OkStatus();
}

bool MixesExperts(const ModelDescription& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const ModelLayer& layer) { return layer.mlp.experts > 0; });
}

absl::Status Runner::Build() {
  KVASIR_ASSIGN_OR_RETURN(arena_, backends_.device->Allocate(spec_.plan.arena_bytes));
  // Two experts can score so alike that the reference, which adds up in another order, chooses the other one
  // and is right to: whole models with experts cannot be compared.
  const bool routed = MixesExperts(spec_.target) || (spec_.draft.has_value() && MixesExperts(*spec_.draft));
  absl::Status whole = routed ? absl::UnimplementedError("experts") : BuildOver(spec_.target, spec_.draft);
  const bool may_shrink = absl::IsResourceExhausted(whole) || absl::IsUnimplemented(whole);
  if (!whole.ok() && !may_shrink) return whole;
  // All ranks run the same shapes.
  KVASIR_ASSIGN_OR_RETURN(const bool all_whole, AllAgree(tensor_, whole.ok()));
  if (!all_whole) {
    std::optional<ModelDescription> draft;
    if (spec_.draft.has_value()) draft = CachePathOf(*spec_.draft, spec_.plan.topology.tp);
    KVASIR_RETURN_IF_ERROR(BuildOver(CachePathOf(spec_.target, spec_.plan.topology.tp), draft));
  }
  result_.measured = {rank_, passes_->measurement()};
  result_.measured.measurement.arena_bytes = arena_->size();
  return absl::OkStatus();
}

absl::Status Runner::RunGraph(const PlanGraph& graph) {
  const PassMetadata metadata = sequences_->MetadataOf(graph);
  KVASIR_RETURN_IF_ERROR(Compare(graph, metadata));
  std::vector<std::chrono::nanoseconds> times;
  for (std::int64_t i = 0; i < spec_.preflight->replays_per_graph; ++i) {
    const auto start = SteadyClock::now();
    KVASIR_RETURN_IF_ERROR(passes_->Run(metadata));
    times.push_back(SteadyClock::now() - start);
  }
  std::sort(times.begin(), times.end());
  result_.graphs.push_back({.rank = rank_,
                            .pass = graph.pass,
                            .query_rows = graph.query_rows,
                            .bucket = graph.bucket,
                            .replays = static_cast<std::int64_t>(times.size()),
                            .shortest = times.front(),
                            .median = times[times.size() / 2]});
  return absl::OkStatus();
}

// The largest distance of `rows` rows, the first and each `step`-th after it, in parts per billion of the
// reference row's largest magnitude; a value that is no number counts as the greatest distance.
std::int64_t Distance(std::span<const float> got, std::span<const float> want, std::size_t rows,
                      std::size_t step, std::size_t columns) {
  constexpr std::int64_t kNoNumber = std::int64_t{1} << 62;
  double worst = 0;
  for (std::size_t at = 0; at < rows; ++at) {
    const std::size_t row = at * step;
    double scale = 0;
    double distance = 0;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      if (!std::isfinite(got[i]) || !std::isfinite(want[i])) return kNoNumber;
      scale = std::max(scale, std::fabs(static_cast<double>(want[i])));
      distance = std::max(distance, std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    }
    if (distance > 0) worst = std::max(worst, distance / std::max(scale, 1e-30));
  }
  return static_cast<std::int64_t>(std::min(worst * 1e9, 1e18));
}

// Replay, eager, reference, and a replay again so that the cache holds the device's own bits afterwards. A
// pass moves recurrent states on, so each run starts from the same ones.
absl::Status Runner::Compare(const PlanGraph& graph, const PassMetadata& metadata) {
  KVASIR_RETURN_IF_ERROR(states_.Restore(*backends_.device));
  KVASIR_RETURN_IF_ERROR(passes_->Run(metadata));
  const std::vector<float> replayed = logits_;
  KVASIR_ASSIGN_OR_RETURN(const std::size_t after_replay, ArenaFingerprint());
  KVASIR_RETURN_IF_ERROR(states_.Restore(*backends_.device));
  KVASIR_RETURN_IF_ERROR(passes_->RunEagerly(*backends_.device, metadata));
  KVASIR_ASSIGN_OR_RETURN(const std::size_t after_eager, ArenaFingerprint());
  const std::span<const std::byte> bits = std::as_bytes(std::span(replayed));
  const std::span<const std::byte> eager_bits = std::as_bytes(std::span(logits_));
  const bool equal = after_replay == after_eager &&
                     std::equal(bits.begin(), bits.end(), eager_bits.begin(), eager_bits.end());
  KVASIR_RETURN_IF_ERROR(states_.Restore(*backends_.device));
  KVASIR_RETURN_IF_ERROR(passes_->RunEagerly(*backends_.reference, metadata));
  const auto columns = static_cast<std::size_t>(options_.target.vocab);
  // A chain's later rows follow the tokens of its earlier ones: two that score alike may change places in the
  // reference, which is right to, and then all behind them differ.
  const bool chain = graph.pass == Pass::kDraftBlock && IsChain(options_);
  const auto step = static_cast<std::size_t>(chain ? graph.query_rows : 1);
  // Rows come first where they are valid: request by request, its padding last.
  const auto rows =
      std::min(static_cast<std::size_t>(spec_.preflight->compared_rows), logits_.size() / columns) / step;
  const std::int64_t distance = Distance(replayed, logits_, rows, step, columns);
  KVASIR_RETURN_IF_ERROR(states_.Restore(*backends_.device));
  KVASIR_RETURN_IF_ERROR(passes_->Run(metadata));
  auto entry = std::find_if(result_.comparisons.begin(), result_.comparisons.end(),
                            [&](const ComparedRows& c) { return c.pass == graph.pass; });
  if (entry == result_.comparisons.end()) {
    entry = result_.comparisons.insert(entry, ComparedRows{.rank = rank_, .pass = graph.pass});
    entry->tolerance_ppb = kPreflightTolerancePpb;
  }
  entry->rows += static_cast<std::int64_t>(rows);
  entry->error_ppb = std::max(entry->error_ppb, distance);
  entry->replay_equals_eager = entry->replay_equals_eager && equal;
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> Runner::ArenaFingerprint() const {
  const auto size = std::min(static_cast<std::size_t>(arena_->size().value()), kSnapshotBytesMax);
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::string chunk;
  std::size_t fingerprint = 0;
  for (std::size_t at = 0; at < size; at += kChunk) {
    chunk.resize(std::min(kChunk, size - at));
    KVASIR_RETURN_IF_ERROR(
        backends_.device->Read(std::as_writable_bytes(std::span(chunk)), arena_->data() + at));
    fingerprint = fingerprint * 1'000'003 + std::hash<std::string>()(chunk);
  }
  return fingerprint;
}

}  // namespace

ModelDescription CachePathOf(const ModelDescription& model, std::int64_t ranks) {
  ModelDescription shrunk = model;
  for (ModelLayer& layer : shrunk.layers) {
    layer.mlp = MlpShape{};
    layer.mlp.intermediate = kShrunkMlpPerRank * ranks;
  }
  shrunk.vocab = std::min(model.vocab, kShrunkVocabPerRank * ranks);
  shrunk.vocab = std::max(ranks, RoundDown(shrunk.vocab, ranks));
  if (shrunk.draft.has_value()) {
    shrunk.draft->mask_token = std::min(shrunk.draft->mask_token, shrunk.vocab - 1);
  }
  return shrunk;
}

absl::StatusOr<RankPreflight> RunPreflight(const PrepareSpec& spec, std::int32_t rank, Communicator& tensor,
                                           const PreflightBackends& backends) {
  return Runner(spec, rank, tensor, backends).Run();
}

}  // namespace kvasir
