#include "planner/service/convert_engine.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "planner/rulesets/vllm/engine_plan_text.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {
namespace {

constexpr std::string_view kWrapperClass = "UniformTypeKVCacheSpecs";

// 0 where reading the page raises: the failure says so.
std::int64_t PageOf(const vllm::EnginePlan& plan, std::int32_t spec) {
  const vllm::EngineResult<std::int64_t> page = vllm::PageBytes(plan.specs[static_cast<std::size_t>(spec)]);
  return page.ok() ? *page : 0;
}

void SetGroup(const vllm::EngineCase& engine_case, const vllm::EnginePlan& plan,
              const vllm::EngineGroup& group, plan::v1::EngineGroup& wire) {
  if (const auto* spec = std::get_if<std::int32_t>(&group.spec)) {
    const vllm::EngineSpec& merged = plan.specs[static_cast<std::size_t>(*spec)];
    wire.set_spec(std::string(vllm::SpecClassName(merged.kind)));
    wire.set_block_tokens(merged.block_size);
    wire.set_page_bytes(PageOf(plan, *spec));
  } else {
    const auto& wrapper = std::get<vllm::UniformTypeSpecs>(group.spec);
    wire.set_spec(std::string(kWrapperClass));
    wire.set_block_tokens(wrapper.block_size);
    std::int64_t bytes = 0;
    for (const auto& member : wrapper.members) bytes += PageOf(plan, member.spec);
    wire.set_page_bytes(bytes);
  }
  wire.set_draft(group.eagle);
  for (const std::int32_t layer : group.layers) {
    wire.add_layers(engine_case.layers[static_cast<std::size_t>(layer)].name);
  }
}

void SetWorker(const vllm::EnginePlan& plan, std::size_t index, plan::v1::EngineWorker& wire) {
  if (index < plan.workers.size()) wire.set_block_count(plan.workers[index].num_blocks);
  if (index >= plan.per_worker.size()) return;
  const vllm::EngineWorkerNumbers& numbers = plan.per_worker[index];
  if (numbers.pool_bytes_per_block.has_value()) wire.set_bytes_per_block(*numbers.pool_bytes_per_block);
  if (numbers.needed_bytes.has_value()) wire.set_needed_bytes(*numbers.needed_bytes);
  if (numbers.check_memory.has_value()) wire.set_usable_bytes(*numbers.check_memory);
  if (numbers.estimated_max_model_len.has_value()) {
    wire.set_estimated_max_model_len_tokens(*numbers.estimated_max_model_len);
  }
}

void SetCapacity(const vllm::EnginePlan& plan, plan::v1::EnginePrediction& wire) {
  wire.set_max_model_len_tokens(plan.max_model_len);
  if (plan.max_concurrency.has_value()) wire.set_max_concurrency(*plan.max_concurrency);
  if (plan.kv_cache_size_tokens.has_value()) wire.set_kv_cache_token_count(*plan.kv_cache_size_tokens);
  if (plan.scheduler_block_size.has_value()) wire.set_scheduler_block_tokens(*plan.scheduler_block_size);
  if (plan.hash_block_size.has_value()) wire.set_hash_block_tokens(*plan.hash_block_size);
}

}  // namespace

plan::v1::EnginePrediction EnginePlanToProto(const vllm::EngineCase& engine_case,
                                             const vllm::EnginePlan& plan) {
  plan::v1::EnginePrediction wire;
  wire.set_ruleset(std::string(vllm::EngineVersionName(plan.version)));
  std::string text = vllm::ToText(engine_case, plan);
  wire.set_plan_id(vllm::EnginePlanId(text));
  wire.set_canonical_text(std::move(text));
  if (plan.failure.has_value()) {
    plan::v1::EngineFailure& failure = *wire.mutable_failure();
    failure.set_stage(std::string(vllm::EngineStageName(plan.failure->stage)));
    failure.set_kind(std::string(vllm::EngineErrorKindName(plan.failure->kind)));
    failure.set_message(plan.failure->message);
  }
  for (const vllm::EngineGroup& group : plan.groups) SetGroup(engine_case, plan, group, *wire.add_groups());
  for (std::size_t i = 0; i < engine_case.workers.size(); ++i) SetWorker(plan, i, *wire.add_workers());
  SetCapacity(plan, wire);
  for (const vllm::EngineWarning& warning : plan.warnings) {
    plan::v1::EngineWarning& one = *wire.add_warnings();
    one.set_about(warning.about);
    one.set_message(warning.message);
    one.set_address(warning.address);
  }
  return wire;
}

}  // namespace kvasir
