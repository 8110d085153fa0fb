#include "planner/questions/engine_modes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "planner/request/engine_answer.h"
#include "planner/request/engine_specs.h"

namespace kvasir {
namespace {

// Nothing where it fails.
void AddCount(EngineMode mode, vllm::EngineCase engine_case, EngineRelease release, EngineCounts& out) {
  const EngineAnswer answer = AnswerOf(std::move(engine_case), release, {}, std::nullopt);
  if (answer.verdict == EngineVerdict::kFails) return;
  out.counts.push_back(
      {.mode = mode, .requests = answer.usable_requests(), .bytes_per_request = answer.needed_bytes()});
}

bool KeepsOnePart(const PlanQuestion& question) {
  if (question.options.dcp == 1 || !question.draft.has_value()) return false;
  const std::vector<ModelLayer>& layers = question.draft->layers;
  return std::any_of(layers.begin(), layers.end(), [](const ModelLayer& layer) {
    return std::holds_alternative<AttentionShape>(layer.mixer);
  });
}

std::optional<vllm::EngineCase> CaseOf(const EngineLaunch& launch) {
  auto asked = EngineCaseOf(launch, {*launch.options.kv_cache_memory_bytes});
  if (!asked.ok()) return std::nullopt;
  return std::move(asked->engine_case);
}

// The same case with the draft's latent caches of a version of their own, so that no group takes both; false
// where the draft has none.
bool KeepDraftApart(const PlanQuestion& question, EngineLaunch launch, vllm::EngineCase& engine_case) {
  if (!question.draft.has_value()) return false;
  launch.draft.reset();
  launch.options.spec_model.reset();
  launch.options.spec_method.reset();
  launch.options.spec_tokens.reset();
  const std::optional<vllm::EngineCase> alone = CaseOf(launch);
  if (!alone.has_value()) return false;
  std::set<std::string> of_target;
  for (const vllm::EngineLayer& layer : alone->layers) of_target.insert(layer.name);
  bool changed = false;
  for (vllm::EngineLayer& layer : engine_case.layers) {
    vllm::EngineSpec spec = engine_case.specs[static_cast<std::size_t>(layer.spec)];
    if (of_target.contains(layer.name) || spec.kind != vllm::SpecKind::kMla) continue;
    spec.model_version = "draft";
    layer.spec = static_cast<std::int32_t>(engine_case.specs.size());
    engine_case.specs.push_back(std::move(spec));
    changed = true;
  }
  return changed;
}

EngineCounts CountsAt(const PlanQuestion& question, EngineLaunch launch, std::int64_t context_tokens) {
  EngineCounts out{.context_tokens = context_tokens};
  launch.options.max_model_len = context_tokens;
  std::optional<vllm::EngineCase> engine_case = CaseOf(launch);
  if (!engine_case.has_value()) return out;
  AddCount(EngineMode::kMerged, *engine_case, launch.release, out);
  if (KeepDraftApart(question, launch, *engine_case))
    AddCount(EngineMode::kApart, *std::move(engine_case), launch.release, out);
  // Without a recurrent state and a draft the option changes nothing, or is refused.
  if (!question.draft.has_value() || !HasStates(question.target)) return out;
  launch.options.replay_ssm = true;
  std::optional<vllm::EngineCase> replaying = CaseOf(launch);
  if (replaying.has_value()) AddCount(EngineMode::kRecoverSsm, *std::move(replaying), launch.release, out);
  return out;
}

}  // namespace

std::string_view EngineModeName(EngineMode mode) {
  switch (mode) {
    case EngineMode::kMerged:
      return "merged";
    case EngineMode::kApart:
      return "apart";
    case EngineMode::kRecoverSsm:
      break;
  }
  return "recover_ssm";
}

absl::StatusOr<EngineLaunch> LaunchBeside(const PlanQuestion& question, vllm::EngineVersion version) {
  if (KeepsOnePart(question)) {
    return absl::FailedPreconditionError(
        "the engine divides the draft's heads and then its tokens over the same ranks: it keeps one part of "
        "that cache, and cannot decode from it");
  }
  PlanQuestion asked = question;
  asked.options.target_backend.clear();  // the engine chooses its own
  asked.options.draft_backend.clear();
  asked.options.draft_context = kDraftSharded;
  absl::StatusOr<EngineLaunch> launch = LaunchOf(asked, ReleaseOf(version));
  if (!launch.ok()) return launch.status();
  launch->options.replay_ssm.reset();
  launch->options.prefix_caching = false;
  launch->options.allow_long_model_len = true;
  launch->did_start = true;  // what its kernels take is another question
  return launch;
}

EngineComparison CountUnderEngine(const PlanQuestion& question, vllm::EngineVersion version,
                                  std::span<const std::int64_t> contexts, const GoOn& go_on) {
  EngineComparison comparison;
  const absl::StatusOr<EngineLaunch> launch = LaunchBeside(question, version);
  if (!launch.ok()) {
    comparison.why_none = std::string(launch.status().message());
    return comparison;
  }
  for (const std::int64_t context : contexts) {
    if (go_on && !go_on()) break;
    comparison.lengths.push_back(CountsAt(question, *launch, context));
  }
  return comparison;
}

}  // namespace kvasir
