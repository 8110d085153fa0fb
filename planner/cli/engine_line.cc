#include "planner/cli/engine_line.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/quantity.h"
#include "planner/questions/engine_modes.h"
#include "planner/request/engine_answer.h"

namespace kvasir::cli {
namespace {

std::string RemarkOf(const EngineAnswer& answer) {
  if (answer.verdict == EngineVerdict::kFails) {
    return "fails: " + std::string(vllm::EngineErrorKindName(answer.plan.failure->kind));
  }
  std::string remark;
  if (answer.padding_layers() > 0 && answer.padded_layers() > 0) {
    remark = absl::StrFormat("%d padding layers (%s), ", answer.padding_layers(),
                             PercentText(answer.padding_layers(), answer.padded_layers()));
  }
  return remark + absl::StrFormat("%d-token blocks, no prefix cache", answer.engine_case.config.block_size);
}

}  // namespace

std::optional<Alternative> EngineLine(const PlanQuestion& question,
                                      const std::vector<CapacityRow>& capacity) {
  constexpr auto kVersion = vllm::EngineVersion::k2026_11;
  if (question.options.kv_memory_bytes.empty() || capacity.empty()) return std::nullopt;
  Alternative line;
  line.label = "vLLM 2026-11";
  absl::StatusOr<EngineLaunch> beside = LaunchBeside(question, kVersion);
  if (!beside.ok()) return std::nullopt;
  EngineLaunch launch = *std::move(beside);
  const std::int64_t memory = *launch.options.kv_cache_memory_bytes;
  for (const CapacityRow& row : capacity) {
    launch.options.max_model_len = row.context_tokens;
    const auto asked = EngineCaseOf(launch, {memory});
    if (!asked.ok()) return std::nullopt;
    const EngineAnswer answer = AnswerOf(asked->engine_case, launch.release, {}, std::nullopt);
    CapacityRow mine;
    mine.context_tokens = row.context_tokens;
    mine.requests = answer.usable_requests();
    line.capacity.push_back(mine);
    if (line.remark.empty() || answer.verdict == EngineVerdict::kFails) line.remark = RemarkOf(answer);
  }
  return line;
}

}  // namespace kvasir::cli
