#include "planner/rulesets/vllm/plan_engine.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/check_memory.h"
#include "planner/rulesets/vllm/concurrency.h"
#include "planner/rulesets/vllm/group_layers.h"
#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/need_bytes.h"
#include "planner/rulesets/vllm/place_tensors.h"
#include "planner/rulesets/vllm/plan_warnings.h"
#include "planner/rulesets/vllm/pool_bytes.h"
#include "planner/rulesets/vllm/project_groups.h"
#include "planner/rulesets/vllm/same_type.h"
#include "planner/rulesets/vllm/scheduler_blocks.h"
#include "planner/rulesets/vllm/union_layers.h"

namespace kvasir::vllm {
namespace {

// One run: fills a plan step by step; a step's failure ends it and keeps what is there.
class Planning {
 public:
  Planning(const EngineCase& engine_case, EngineVersion version, bool repaired)
      : case_(engine_case), config_(engine_case.config), table_(version, repaired) {
    plan_.version = version;
    plan_.max_model_len = config_.max_model_len;
  }

  EnginePlan Run() && {
    plan_.failure = Steps();
    plan_.warnings = WarningsOf(table_, case_, plan_, notes_);
    plan_.log = std::move(notes_.log);
    plan_.specs = std::move(table_).TakeSpecs();
    return std::move(plan_);
  }

 private:
  std::optional<EngineFailure> Steps() {
    if (auto failure = ReadLayers()) return failure;
    if (auto failure = Group()) return failure;
    if (auto failure = FitMemory()) return failure;
    if (auto failure = Place()) return failure;
    return Schedule();
  }

  std::optional<EngineFailure> ReadLayers() {
    EngineResult<std::vector<std::int32_t>> specs = InternSpecs(table_, case_);
    if (!specs.ok()) return std::move(specs).failure();
    worker_layers_ = LayersOfWorkers(case_, *specs);
    UnionLayers all = UnionOfWorkers(case_, worker_layers_);
    layers_ = std::move(all.layers);
    plan_.attention_free = layers_.empty();
    if (const auto uniform = IsSpecUniform(table_, layers_); uniform.ok()) plan_.is_spec_uniform = *uniform;
    if (layers_.empty()) {
      plan_.is_type_uniform = false;
    } else if (const auto same = IsSameType(table_, layers_); same.ok()) {
      plan_.is_type_uniform = *same;
    }
    if (all.conflict.has_value()) return std::move(all.conflict);
    return PrepareForGrouping(table_, case_, layers_);
  }

  std::optional<EngineFailure> Group() {
    EngineResult<std::vector<EngineGroup>> groups =
        GroupLayers(table_, layers_, config_, case_.layers, notes_);
    if (!groups.ok()) return std::move(groups).failure();
    plan_.groups = *std::move(groups);
    plan_.grouped = true;
    for (const LayerSpecs& layers : worker_layers_) {
      projected_.push_back(ProjectGroups(plan_.groups, layers, case_.layers.size()));
    }
    return std::nullopt;
  }

  std::optional<EngineFailure> FitMemory() {
    std::vector<std::int64_t> available;
    available.reserve(case_.workers.size());
    for (const EngineWorker& worker : case_.workers) available.push_back(worker.available_bytes);
    MemoryFit fit = FitWorkers(table_, projected_, config_, available);
    plan_.max_model_len = config_.max_model_len = fit.max_model_len;
    plan_.per_worker = std::move(fit.per_worker);
    memory_ = std::move(fit.memory);
    return std::move(fit.failure);
  }

  std::optional<EngineFailure> Place() {
    std::vector<EngineWorkerPlan> workers;
    workers.reserve(projected_.size());
    for (std::size_t w = 0; w < projected_.size(); ++w) {
      std::size_t layers = 0;
      for (const EngineGroup& group : projected_[w]) layers += group.layers.size();
      if (layers != worker_layers_[w].size()) {
        return PlanFailure(EngineErrorKind::kAssertionError, "some layers are in no group");
      }
      EngineResult<EngineWorkerPlan> worker = PlaceTensors(table_, projected_[w], config_, memory_[w]);
      if (!worker.ok()) return std::move(worker).failure();
      workers.push_back(*std::move(worker));
    }
    const auto fewest = std::min_element(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
      return a.num_blocks < b.num_blocks;
    });
    const std::int64_t num_blocks = fewest->num_blocks;
    for (EngineWorkerPlan& worker : workers) {
      EngineResult<EngineWorkerPlan> lowered =
          WithFewerBlocks(table_, std::move(worker), config_, num_blocks);
      if (!lowered.ok()) return std::move(lowered).failure();
      worker = *std::move(lowered);
    }
    plan_.workers = std::move(workers);
    return std::nullopt;
  }

  // The scheduler sees worker 0's groups, each wrapper as its first member.
  std::optional<EngineFailure> Schedule() {
    const EngineWorkerPlan& first = plan_.workers.front();
    for (const EngineGroup& group : first.groups) {
      const auto* const wrapper = std::get_if<UniformTypeSpecs>(&group.spec);
      plan_.scheduler_specs.push_back(wrapper != nullptr ? wrapper->members.front().spec
                                                         : std::get<std::int32_t>(group.spec));
    }
    DescribePrecision(first.groups);
    if (auto failure = PrintCapacity(first.num_blocks)) return failure;
    EngineResult<SchedulerBlocks> blocks = ResolveSchedulerBlocks(table_, plan_.scheduler_specs, config_);
    if (!blocks.ok()) {
      EngineFailure failure = std::move(blocks).failure();
      failure.stage = EngineStage::kBlockSizes;
      return failure;
    }
    plan_.scheduler_block_size = blocks->scheduler;
    plan_.hash_block_size = blocks->hash;
    return std::nullopt;
  }

  // A model without caches prints no capacity.
  std::optional<EngineFailure> PrintCapacity(std::int64_t num_blocks) {
    if (plan_.scheduler_specs.empty()) return std::nullopt;
    EngineResult<Capacity> capacity = CapacityOf(num_blocks);
    if (!capacity.ok()) {
      EngineFailure failure = std::move(capacity).failure();
      failure.stage = EngineStage::kConcurrency;
      return failure;
    }
    plan_.max_concurrency = capacity->max_concurrency;
    plan_.kv_cache_size_tokens = capacity->tokens;
    return std::nullopt;
  }

  EngineResult<Capacity> CapacityOf(std::int64_t num_blocks) {
    std::int64_t request_blocks = 0;
    for (const std::int32_t spec : plan_.scheduler_specs) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t blocks,
                              RequestBlocks(table_, {{}, spec, false}, config_, config_.max_model_len));
      request_blocks += blocks;
    }
    return PrintedCapacity(num_blocks, request_blocks, config_.max_model_len);
  }

  // Mamba states and caches of several precisions are zeroed when a block changes hands.
  void DescribePrecision(const std::vector<EngineGroup>& groups) {
    const EngineSpec* attention = nullptr;
    for (const EngineGroup& group : groups) {
      for (const std::int32_t id : SpecsOf(group)) {
        const EngineSpec& spec = table_[id];
        if (spec.kind == SpecKind::kMamba) {
          plan_.needs_kv_cache_zeroing = true;
        } else if (attention == nullptr) {
          attention = &spec;
        } else if (spec.dtype != attention->dtype || spec.kv_quant_mode != attention->kv_quant_mode) {
          plan_.has_mixed_precision_kv_cache = true;
        }
      }
    }
    plan_.needs_kv_cache_zeroing = plan_.needs_kv_cache_zeroing || plan_.has_mixed_precision_kv_cache;
  }

  const EngineCase& case_;
  EngineConfig config_;  // max_model_len changes by auto fit
  SpecTable table_;
  EnginePlan plan_;
  GroupingNotes notes_;
  std::vector<LayerSpecs> worker_layers_;
  LayerSpecs layers_;                                // the union, in the engine's order
  std::vector<std::vector<EngineGroup>> projected_;  // one a worker
  std::vector<std::int64_t> memory_;                 // bytes, after an override of the number of blocks
};

}  // namespace

EnginePlan PlanEngine(const EngineCase& engine_case, EngineVersion version) {
  return Planning(engine_case, version, /*repaired=*/false).Run();
}

EnginePlan PlanEngineAsMeant(const EngineCase& engine_case, EngineVersion version) {
  return Planning(engine_case, version, /*repaired=*/true).Run();
}

}  // namespace kvasir::vllm
