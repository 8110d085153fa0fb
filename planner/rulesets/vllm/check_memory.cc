#include "planner/rulesets/vllm/check_memory.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/need_bytes.h"
#include "planner/rulesets/vllm/pool_bytes.h"

namespace kvasir::vllm {
namespace {

// "2.14 GiB", to the nearest hundredth.
std::string Gib(std::int64_t bytes) {
  const Wide hundredths = (Wide{bytes} * 100 + (Wide{1} << 29)) >> 30;
  const std::int64_t value = Saturated(hundredths);
  return absl::StrFormat("%d.%02d GiB", value / 100, value % 100);
}

// One worker under examination.
struct Worker {
  const std::vector<EngineGroup>* groups = nullptr;
  EngineResult<PoolShape> shape = PoolShape{};
  std::int64_t memory = 0;  // bytes
  std::int64_t check = 0;   // bytes, without the null block
};

EngineResult<std::int64_t> Longest(const SpecTable& table, const Worker& worker, const EngineConfig& config) {
  return LongestFitting(table, *worker.groups, *worker.shape, config, config.max_model_len, worker.check);
}

std::optional<EngineFailure> SizeWorkers(const SpecTable& table, const EngineConfig& config,
                                         std::vector<Worker>& workers) {
  for (Worker& worker : workers) {
    if (worker.groups->empty()) continue;
    worker.shape = ShapeOfPool(table, *worker.groups, config);
    if (!worker.shape.ok()) return worker.shape.failure();
    if (!config.num_gpu_blocks_override.has_value()) continue;
    if (worker.shape->bytes_per_block == 0) {
      return PlanFailure(EngineErrorKind::kZeroDivisionError, "a block of the pool has 0 bytes");
    }
    const auto memory = Exact(Wide{*config.num_gpu_blocks_override} * worker.shape->bytes_per_block);
    if (!memory.ok()) return memory.failure();
    worker.memory = *memory;
  }
  for (Worker& worker : workers) {
    worker.check = worker.memory - (worker.groups->empty() ? 0 : worker.shape->bytes_per_block);
  }
  return std::nullopt;
}

// Lowers max_model_len to what the tightest worker holds.
std::optional<EngineFailure> AutoFit(const SpecTable& table, const std::vector<Worker>& workers,
                                     EngineConfig& config) {
  std::int64_t fitted = config.max_model_len;
  for (const Worker& worker : workers) {
    if (worker.groups->empty()) continue;
    const auto longest = Longest(table, worker, config);
    if (!longest.ok()) return longest.failure();
    fitted = std::min(fitted, *longest);
  }
  if (fitted <= 0) {
    return PlanFailure(
        EngineErrorKind::kValueError,
        "no length fits: memory does not hold the blocks of a single token; give the cache more memory");
  }
  config.max_model_len = fitted;
  return std::nullopt;
}

std::optional<EngineFailure> CheckWorker(const SpecTable& table, const Worker& worker,
                                         const EngineConfig& config) {
  if (worker.check <= 0) {
    return PlanFailure(
        EngineErrorKind::kValueError,
        absl::StrFormat("no memory is left for cache blocks: %d bytes hold no block beside the null "
                        "block of %d; give the cache more memory",
                        worker.memory, worker.shape->bytes_per_block));
  }
  const auto needed = NeededBytes(table, *worker.groups, *worker.shape, config, config.max_model_len);
  if (!needed.ok()) return needed.failure();
  if (*needed <= worker.check) return std::nullopt;
  const auto longest = Longest(table, worker, config);
  if (!longest.ok()) return longest.failure();
  const std::string fits =
      *longest > 0 ? absl::StrFormat("; at most %d tokens fit", *longest) : std::string();
  return PlanFailure(EngineErrorKind::kValueError,
                     absl::StrFormat("one request of %d tokens needs %s of cache and %s are there%s; lower "
                                     "max_model_len or give the cache more memory",
                                     config.max_model_len, Gib(*needed), Gib(worker.check), fits));
}

std::optional<EngineFailure> CheckAll(const SpecTable& table, const std::vector<Worker>& workers,
                                      EngineConfig& config) {
  if (config.auto_fit) {
    if (auto failure = AutoFit(table, workers, config)) return failure;
  }
  for (const Worker& worker : workers) {
    if (worker.groups->empty()) continue;
    if (auto failure = CheckWorker(table, worker, config)) return failure;
  }
  return std::nullopt;
}

// For reports: each number on its own, so that one that raises hides no other.
EngineWorkerNumbers NumbersOf(const SpecTable& table, const Worker& worker, const EngineConfig& config) {
  EngineWorkerNumbers numbers;
  if (worker.groups->empty()) return numbers;
  const auto shape = ShapeOfPool(table, *worker.groups, config);
  if (!shape.ok()) return numbers;
  const std::int64_t memory = config.num_gpu_blocks_override.has_value()
                                  ? Saturated(Wide{*config.num_gpu_blocks_override} * shape->bytes_per_block)
                                  : worker.memory;
  numbers.pool_bytes_per_block = shape->bytes_per_block;
  numbers.check_memory = Saturated(Wide{memory} - shape->bytes_per_block);
  const auto needed = NeededBytes(table, *worker.groups, *shape, config, config.max_model_len);
  if (needed.ok()) numbers.needed_bytes = *needed;
  const auto longest =
      LongestFitting(table, *worker.groups, *shape, config, config.max_model_len, *numbers.check_memory);
  if (longest.ok()) numbers.estimated_max_model_len = *longest;
  return numbers;
}

}  // namespace

MemoryFit FitWorkers(const SpecTable& table, const std::vector<std::vector<EngineGroup>>& projected,
                     EngineConfig config, const std::vector<std::int64_t>& available) {
  std::vector<Worker> workers(projected.size());
  for (std::size_t w = 0; w < workers.size(); ++w) {
    workers[w].groups = &projected[w];
    workers[w].memory = available[w];
  }
  MemoryFit fit;
  fit.failure = SizeWorkers(table, config, workers);
  if (!fit.failure.has_value()) fit.failure = CheckAll(table, workers, config);
  fit.max_model_len = config.max_model_len;
  for (const Worker& worker : workers) {
    fit.memory.push_back(worker.memory);
    fit.per_worker.push_back(NumbersOf(table, worker, config));
  }
  return fit;
}

}  // namespace kvasir::vllm
