#include "planner/request/engine_answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/rulesets/vllm/plan_engine.h"

namespace kvasir {
namespace {

vllm::EngineCase WithMemory(vllm::EngineCase engine_case, std::int64_t bytes) {
  for (vllm::EngineWorker& worker : engine_case.workers) worker.available_bytes = bytes;
  return engine_case;
}

bool ShortOfMemory(const vllm::EnginePlan& plan) {
  if (!plan.failure.has_value() || plan.failure->kind != vllm::EngineErrorKind::kValueError) return false;
  for (const vllm::EngineWorkerNumbers& worker : plan.per_worker) {
    const std::int64_t has = worker.check_memory.value_or(0);
    if (has <= 0 || worker.needed_bytes.value_or(0) > has) return true;
  }
  return false;
}

// The rule does not depend on the memory, so that a plan that does not fit has one too.
std::optional<CapacityRule> RuleOf(const vllm::EngineCase& engine_case, const vllm::EnginePlan& plan,
                                   EngineRelease release) {
  if (const auto rule = CapacityRuleOf(engine_case, plan)) return rule;
  const vllm::EngineCase ample = WithMemory(engine_case, kAmpleBytes);
  return CapacityRuleOf(ample, vllm::PlanEngine(ample, release.version()));
}

std::vector<std::string> LinesBetween(const CapacityRule& rule, const PrintedCapacity& least,
                                      const PrintedCapacity& most) {
  return {absl::StrFormat("GPU KV cache size: %s to %s tokens", WithCommas(least.tokens),
                          WithCommas(most.tokens)),
          absl::StrFormat("Maximum concurrency for %s tokens per request: %.2fx to %.2fx",
                          WithCommas(rule.max_model_len), least.concurrency, most.concurrency)};
}

std::int64_t BlocksOf(const vllm::EnginePlan& plan) {
  return plan.workers.empty() ? 0 : plan.workers.front().num_blocks;
}

}  // namespace

std::int64_t EngineAnswer::needed_bytes() const {
  std::int64_t bytes = 0;
  for (const vllm::EngineWorkerNumbers& worker : plan.per_worker)
    bytes = std::max(bytes, worker.needed_bytes.value_or(0));
  return bytes;
}

std::int64_t EngineAnswer::given_bytes() const {
  std::int64_t bytes = engine_case.workers.front().available_bytes;
  for (const vllm::EngineWorker& worker : engine_case.workers)
    bytes = std::min(bytes, worker.available_bytes);
  return bytes;
}

std::int64_t EngineAnswer::usable_requests() const {
  return verdict == EngineVerdict::kFits ? (least.num_blocks - 1) / rule->blocks_per_request : 0;
}

std::int64_t EngineAnswer::longest_tokens() const {
  std::int64_t tokens = engine_case.config.max_model_len;
  for (const vllm::EngineWorkerNumbers& worker : plan.per_worker) {
    tokens = std::min(tokens, worker.estimated_max_model_len.value_or(0));
  }
  return plan.per_worker.empty() ? 0 : tokens;
}

std::int64_t EngineAnswer::padding_layers() const {
  std::size_t most_layers = 0;
  std::size_t layers = 0;
  for (const vllm::EngineGroup& group : plan.groups) {
    most_layers = std::max(most_layers, group.layers.size());
    layers += group.layers.size();
  }
  return static_cast<std::int64_t>(most_layers * plan.groups.size() - layers);
}

std::int64_t EngineAnswer::padded_layers() const {
  std::size_t most_layers = 0;
  for (const vllm::EngineGroup& group : plan.groups) most_layers = std::max(most_layers, group.layers.size());
  std::size_t layers = 0;
  for (const vllm::EngineGroup& group : plan.groups) {
    if (group.layers.size() < most_layers) layers += group.layers.size();
  }
  return static_cast<std::int64_t>(layers);
}

EngineAnswer AnswerOf(vllm::EngineCase engine_case, EngineRelease release, std::vector<std::string> before,
                      std::optional<std::int64_t> most_bytes) {
  EngineAnswer answer;
  answer.engine_case = std::move(engine_case);
  answer.plan = vllm::PlanEngine(answer.engine_case, release.version());
  answer.exact = !most_bytes.has_value();
  if (!answer.plan.failure.has_value()) {
    answer.verdict = EngineVerdict::kFits;
  } else if (ShortOfMemory(answer.plan)) {
    answer.verdict = EngineVerdict::kDoesNotFit;
  }
  answer.log_lines = std::move(before);
  answer.log_lines.insert(answer.log_lines.end(), answer.plan.log.begin(), answer.plan.log.end());
  answer.rule = RuleOf(answer.engine_case, answer.plan, release);
  if (!answer.rule.has_value()) return answer;
  answer.least = CapacityOf(*answer.rule, release, BlocksOf(answer.plan));
  answer.most = answer.least;
  if (most_bytes.has_value()) {
    const vllm::EnginePlan most =
        vllm::PlanEngine(WithMemory(answer.engine_case, *most_bytes), release.version());
    answer.fits_most = !most.failure.has_value();
    answer.most = CapacityOf(*answer.rule, release, BlocksOf(most));
  }
  if (answer.verdict != EngineVerdict::kFits && !answer.fits_most) return answer;
  const std::vector<std::string> lines = answer.exact ? CapacityLines(*answer.rule, release, answer.least)
                                                      : LinesBetween(*answer.rule, answer.least, answer.most);
  answer.log_lines.insert(answer.log_lines.end(), lines.begin(), lines.end());
  return answer;
}

}  // namespace kvasir
