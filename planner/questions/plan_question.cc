#include "planner/questions/plan_question.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/request/build_request.h"
#include "planner/request/engine_budget.h"
#include "planner/request/launch_of_options.h"

namespace kvasir {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string RanksText(std::int64_t tp) {
  return tp == 1 ? "one rank" : absl::StrFormat("each of %d ranks", tp);
}

std::string TakenText(const EngineBudget& budget, MemoryEnd end) {
  std::string text;
  for (const BudgetLine& line : budget.taken) {
    const std::int64_t bytes = end == MemoryEnd::kLeast ? line.bytes.most : line.bytes.least;
    text += absl::StrFormat("%s%s %d MiB", text.empty() ? "" : ", ", line.what, bytes / kMiB);
  }
  return text;
}

// The engine refuses batches of more requests than tokens; ours hold a row of each beside any prefill chunk.
void RaiseBatchedTokens(EngineLaunch& launch) {
  EngineLaunch usual = launch;
  usual.options.max_num_seqs.reset();
  const absl::StatusOr<EngineSettings> settings = SettingsOf(usual);
  const std::int64_t seqs = launch.options.max_num_seqs.value_or(0);
  if (settings.ok() && settings->max_num_batched_tokens < seqs) launch.options.max_num_batched_tokens = seqs;
}

}  // namespace

PlanRequest RequestOf(const PlanQuestion& question) {
  return BuildRequest(question.target, question.draft, question.options);
}

absl::StatusOr<EngineLaunch> LaunchOf(const PlanQuestion& question, EngineRelease release) {
  return LaunchOf(question.target, question.draft, question.options, release);
}

absl::Status SetMemoryOf(const GpuRow& device, MemoryEnd end, PlanQuestion& question) {
  PlanQuestion asked = question;
  asked.options.kv_memory_bytes.clear();
  // Backends are ours and change no weight.
  asked.options.target_backend.clear();
  asked.options.draft_backend.clear();
  // So are these, where the engine has no such cache.
  asked.options.draft_context = kDraftSharded;
  if (asked.options.cache_dtype == "f32") asked.options.cache_dtype = "auto";
  KVASIR_ASSIGN_OR_RETURN(EngineLaunch launch, LaunchOf(asked, ReleaseOf(vllm::EngineVersion::k2026_11)));
  launch.device = device;
  RaiseBatchedTokens(launch);
  launch.did_start = true;  // which kernels another engine would take is not the question
  KVASIR_ASSIGN_OR_RETURN(const EngineSettings settings, SettingsOf(launch));
  const EngineBudget budget = BudgetOf(launch, settings, std::nullopt, std::nullopt);
  const bool least = end == MemoryEnd::kLeast;
  const std::int64_t cache = least ? budget.cache.least : budget.cache.most;
  if (cache <= 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s on %s %s nothing left for caches; of its %d MiB go, at %s: %s",
                        RanksText(asked.options.tp), std::string(device.title), least ? "may have" : "has",
                        (least ? budget.given.least : budget.given.most) / kMiB, least ? "most" : "least",
                        TakenText(budget, end)));
  }
  question.options.kv_memory_bytes = {cache};
  return absl::OkStatus();
}

}  // namespace kvasir
