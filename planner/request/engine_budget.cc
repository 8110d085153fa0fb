#include "planner/request/engine_budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Rows of the widest MLP, of all experts that one token visits.
std::int64_t WidestMlp(const ModelDescription& model) {
  std::int64_t widest = 0;
  for (const ModelLayer& layer : model.layers) {
    const MlpShape& mlp = layer.mlp;
    widest = std::max(widest, mlp.intermediate);
    widest = std::max(widest, mlp.experts_per_token * mlp.expert_intermediate + mlp.shared_intermediate);
  }
  return widest;
}

BytesRange Activations(const EngineLaunch& launch, const EngineSettings& settings) {
  const auto tokens = static_cast<double>(settings.max_num_batched_tokens);
  const auto hidden = static_cast<double>(launch.target.hidden);
  const double mlp = static_cast<double>(WidestMlp(launch.target)) / static_cast<double>(settings.tp);
  const double rows = tokens * (4 * hidden + 2 * mlp) * 2;
  const double logits =
      static_cast<double>(settings.max_num_seqs) * static_cast<double>(launch.target.vocab) * 4;
  BytesRange range;
  range.least = static_cast<std::int64_t>(0.5 * rows + logits);
  range.most = static_cast<std::int64_t>(2 * rows + 4 * logits) + 512 * kMiB;
  range.basis = absl::StrFormat(
      "%d batched tokens through the widest layer, logits of %d requests in fp32 once to "
      "four times; public logs lie between",
      settings.max_num_batched_tokens, settings.max_num_seqs);
  return range;
}

// The engine's capture sizes: 1, 2, 4, then by 8 to 256, then by 16.
std::int64_t CaptureSizes(const EngineLaunch& launch, const EngineSettings& settings) {
  const LaunchOptions& said = launch.options;
  if (said.cudagraph_capture_sizes.has_value())
    return static_cast<std::int64_t>(said.cudagraph_capture_sizes->size());
  const std::int64_t rows = settings.max_num_seqs * (settings.spec_tokens + 1) * 2;
  const std::int64_t most = said.max_cudagraph_capture_size.value_or(
      std::min({rows, std::int64_t{512}, settings.max_num_batched_tokens}));
  const std::int64_t by_8 = std::min<std::int64_t>(most, 248) / 8;
  return std::min<std::int64_t>(most, 3) + by_8 + std::max<std::int64_t>(0, most - 240) / 16;
}

BytesRange Graphs(const EngineLaunch& launch, const EngineSettings& settings) {
  BytesRange range;
  const bool none = launch.options.enforce_eager.value_or(false) || launch.options.cudagraph_mode == "NONE";
  if (none) {
    range.basis = "no graphs are captured";
    return range;
  }
  const std::int64_t sizes = CaptureSizes(launch, settings);
  range.least = 2 * kMiB * sizes;
  range.most = 100 * kMiB * sizes;
  range.basis = absl::StrFormat(
      "%d sizes of 2 to 100 MiB; vllm#50780 reports 24 MiB, vllm#51590 up to 330 MiB for "
      "Kimi-K3 on MI355X",
      sizes);
  return range;
}

BytesRange Communication(const EngineSettings& settings) {
  const std::int64_t ranks = settings.tp * settings.pp;
  BytesRange range;
  range.least = ranks == 1 ? 100 * kMiB : 300 * kMiB;
  range.most = ranks == 1 ? 1024 * kMiB : 3072 * kMiB;
  range.basis = ranks == 1 ? "the driver's context" : "the driver's context and communicators' buffers";
  return range;
}

}  // namespace

EngineBudget BudgetOf(const EngineLaunch& launch, const EngineSettings& settings,
                      std::optional<std::int64_t> checkpoint_bytes,
                      std::optional<std::int64_t> draft_checkpoint_bytes) {
  EngineBudget budget;
  const double share = settings.gpu_memory_utilization;
  budget.given.least =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(launch.device->bytes_least) * share));
  budget.given.most =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(launch.device->bytes_most) * share));
  budget.given.basis = absl::StrFormat("%.2f of a %s (%s)", share, std::string(launch.device->title),
                                       std::string(launch.device->source));
  WeightSplit split;
  split.tp = settings.tp;
  split.pp = settings.pp;
  split.with_mtp = settings.spec_method == "mtp" && !launch.draft.has_value();
  split.name = launch.options.model.value_or("");
  budget.taken.push_back({"weights", WeightBytesOf(launch.target, split, checkpoint_bytes)});
  if (launch.draft.has_value()) {
    split.tp = launch.options.spec_tensor_parallel.value_or(settings.tp);
    split.pp = 1;
    split.with_mtp = false;
    split.name = launch.options.spec_model.value_or("");
    budget.taken.push_back({"draft weights", WeightBytesOf(*launch.draft, split, draft_checkpoint_bytes)});
  }
  budget.taken.push_back({"activations", Activations(launch, settings)});
  budget.taken.push_back({"communication", Communication(settings)});
  if (launch.release.profiles_graphs()) budget.taken.push_back({"graphs", Graphs(launch, settings)});
  budget.cache = {budget.given.least, budget.given.most, "what is left"};
  for (const BudgetLine& line : budget.taken) {
    budget.cache.least -= line.bytes.most;
    budget.cache.most -= line.bytes.least;
  }
  if (launch.options.cpu_offload_gib.value_or(0) > 0) {
    budget.cache.most += static_cast<std::int64_t>(*launch.options.cpu_offload_gib * 1024) * kMiB;
  }
  return budget;
}

}  // namespace kvasir
