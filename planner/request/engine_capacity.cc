#include "planner/request/engine_capacity.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

std::int64_t BlockTokens(const vllm::EnginePlan& plan, const vllm::EngineGroup& group) {
  if (const auto* wrapper = std::get_if<vllm::UniformTypeSpecs>(&group.spec)) return wrapper->block_size;
  return plan.specs[static_cast<std::size_t>(std::get<std::int32_t>(group.spec))].block_size;
}

}  // namespace

std::string WithCommas(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::optional<CapacityRule> CapacityRuleOf(const vllm::EngineCase& engine_case,
                                           const vllm::EnginePlan& plan) {
  if (plan.workers.empty() || plan.groups.empty() || !plan.max_concurrency.has_value()) return std::nullopt;
  if (*plan.max_concurrency <= 0) return std::nullopt;
  CapacityRule rule;
  const auto blocks = static_cast<double>(plan.workers.front().num_blocks);
  rule.blocks_per_request = std::llround(blocks / *plan.max_concurrency);
  rule.groups = static_cast<std::int64_t>(plan.groups.size());
  rule.least_block = BlockTokens(plan, plan.groups.front());
  for (const vllm::EngineGroup& group : plan.groups) {
    rule.least_block = std::min(rule.least_block, BlockTokens(plan, group));
  }
  rule.context_ranks = engine_case.config.dcp * engine_case.config.pcp;
  rule.max_model_len = plan.max_model_len;
  return rule.blocks_per_request > 0 ? std::optional<CapacityRule>(rule) : std::nullopt;
}

PrintedCapacity CapacityOf(const CapacityRule& rule, EngineRelease release, std::int64_t num_blocks) {
  PrintedCapacity capacity;
  capacity.num_blocks = num_blocks;
  capacity.concurrency = static_cast<double>(num_blocks) / static_cast<double>(rule.blocks_per_request);
  if (release.prints_concurrency_tokens()) {
    capacity.tokens =
        static_cast<std::int64_t>(capacity.concurrency * static_cast<double>(rule.max_model_len));
  } else {
    capacity.tokens = num_blocks / rule.groups * rule.least_block * rule.context_ranks;
  }
  return capacity;
}

std::vector<std::string> CapacityLines(const CapacityRule& rule, EngineRelease release,
                                       const PrintedCapacity& capacity) {
  constexpr std::int32_t kOneLineSince = 20260804;  // vLLM 5f2ee2fa8
  const std::string size = absl::StrFormat("GPU KV cache size: %s tokens", WithCommas(capacity.tokens));
  const std::string concurrency = absl::StrFormat("Maximum concurrency for %s tokens per request: %.2fx",
                                                  WithCommas(rule.max_model_len), capacity.concurrency);
  if (release.day >= kOneLineSince) return {size + ", " + concurrency};
  return {size, concurrency};
}

}  // namespace kvasir
