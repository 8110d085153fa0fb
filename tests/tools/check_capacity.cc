#include "tests/tools/check_capacity.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/request/engine_capacity.h"
#include "planner/request/engine_specs.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/tools/log_launch.h"

namespace kvasir {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kHalfCent = 0.005;  // of two printed decimals
constexpr double kAtMost = 0.05;     // half of what a figure with one decimal may hide
constexpr double kSlack = 1e-9;
constexpr std::int64_t kAmple = std::int64_t{1} << 46;  // bytes; every request fits

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
  [[nodiscard]] bool Has(std::int64_t value) const { return value >= low && value <= high; }
};

// Bytes that are printed as `gib` with two decimals.
Range BytesOf(double gib) {
  return {static_cast<std::int64_t>((gib - kHalfCent) * kGiB),
          static_cast<std::int64_t>((gib + kHalfCent) * kGiB)};
}

bool PrintsAs(double value, double printed) { return std::fabs(value - printed) <= kHalfCent + kSlack; }

// How far a figure may be from the row's concurrency. The engine prints two decimals, reports often fewer.
double Rounding(const LogRow& row) { return std::min(row.concurrency_step / 2, kAtMost) + kSlack; }

// One launch, planned with ample memory: all that a number of blocks does not decide.
struct Computed {
  CapacityRule rule;
  EngineRelease release;
  std::int64_t pool_bytes = 0;  // of a block, on the worker that holds most
  std::int64_t needed_bytes = 0;
  std::int64_t block = 0;  // tokens
  EngineLaunch launch;
  vllm::EngineCase engine_case;
};

std::optional<Computed> Compute(const EngineLaunch& launch, std::string& why) {
  const auto question = EngineCaseOf(launch, {kAmple});
  if (!question.ok()) {
    why = std::string(question.status().message());
    return std::nullopt;
  }
  const vllm::EnginePlan plan = vllm::PlanEngine(question->engine_case, launch.release.version());
  if (plan.failure.has_value()) {
    why = plan.failure->message;
    return std::nullopt;
  }
  const auto rule = CapacityRuleOf(question->engine_case, plan);
  if (!rule.has_value()) {
    why = "no capacity";
    return std::nullopt;
  }
  Computed computed;
  computed.rule = *rule;
  computed.release = launch.release;
  computed.launch = launch;
  computed.engine_case = question->engine_case;
  computed.block = question->engine_case.config.block_size;
  for (const vllm::EngineWorkerNumbers& worker : plan.per_worker) {
    computed.pool_bytes = std::max(computed.pool_bytes, worker.pool_bytes_per_block.value_or(0));
    computed.needed_bytes = std::max(computed.needed_bytes, worker.needed_bytes.value_or(0));
  }
  if (computed.pool_bytes == 0) why = "no pool";
  return computed.pool_bytes == 0 ? std::nullopt : std::optional<Computed>(computed);
}

// Whether `blocks` gives every figure that the row prints.
bool Prints(const LogRow& row, const Computed& computed, std::int64_t blocks) {
  if (row.num_blocks.has_value() && *row.num_blocks != blocks) return false;
  const PrintedCapacity capacity = CapacityOf(computed.rule, computed.release, blocks);
  if (row.tokens.has_value() && *row.tokens != capacity.tokens) return false;
  return !row.concurrency.has_value() || std::fabs(capacity.concurrency - *row.concurrency) <= Rounding(row);
}

std::string Shown(const Computed& computed, std::int64_t blocks) {
  const PrintedCapacity capacity = CapacityOf(computed.rule, computed.release, blocks);
  return absl::StrFormat(
      "%s tokens, %.2fx, %d blocks of %d tokens, %d groups, %d B a block, %d blocks a request",
      WithCommas(capacity.tokens), capacity.concurrency, blocks, computed.block, computed.rule.groups,
      computed.pool_bytes, computed.rule.blocks_per_request);
}

// A row that printed a capacity. Fills `text` with the figures, or with the nearest.
bool CheckPrinted(const LogRow& row, const Computed& computed, std::string& text) {
  if (HasStates(computed.launch.target) && row.block_size.has_value() && *row.block_size != computed.block) {
    text = absl::StrFormat("block %d, printed %d", computed.block, *row.block_size);
    return false;
  }
  Range blocks;
  if (row.available_gib.has_value()) {
    const Range bytes = BytesOf(*row.available_gib);
    blocks = {bytes.low / computed.pool_bytes, bytes.high / computed.pool_bytes};
  } else if (row.concurrency.has_value()) {
    // Without the memory any number of blocks will do that gives all the figures.
    const auto request = static_cast<double>(computed.rule.blocks_per_request);
    blocks = {static_cast<std::int64_t>((*row.concurrency - Rounding(row)) * request),
              static_cast<std::int64_t>((*row.concurrency + Rounding(row)) * request) + 1};
  } else if (row.num_blocks.has_value()) {
    blocks = {*row.num_blocks, *row.num_blocks};
  } else {
    text = "neither memory nor concurrency nor blocks";
    return false;
  }
  for (std::int64_t n = blocks.low; n <= blocks.high; ++n) {
    if (!Prints(row, computed, n)) continue;
    text = Shown(computed, n) + absl::StrFormat(" (%d..%d)", blocks.low, blocks.high);
    return true;
  }
  text = absl::StrFormat("from %s to %s", Shown(computed, blocks.low), Shown(computed, blocks.high));
  return false;
}

std::int64_t EstimateFor(const Computed& computed, std::int64_t bytes) {
  constexpr std::int32_t kNullBlockSince = 20260701;  // vLLM 47272 keeps one block back
  vllm::EngineCase engine_case = computed.engine_case;
  const std::int64_t extra = computed.release.day < kNullBlockSince ? computed.pool_bytes : 0;
  for (vllm::EngineWorker& worker : engine_case.workers) worker.available_bytes = bytes + extra;
  const vllm::EnginePlan plan = vllm::PlanEngine(engine_case, computed.release.version());
  std::int64_t least = -1;
  for (const vllm::EngineWorkerNumbers& worker : plan.per_worker) {
    const std::int64_t length = worker.estimated_max_model_len.value_or(0);
    least = least < 0 ? length : std::min(least, length);
  }
  return least;
}

// A row whose start was refused: bytes needed for the length, and the longest that would fit.
bool CheckRefused(const LogRow& row, const Computed& computed, std::string& text) {
  const double needed = static_cast<double>(computed.needed_bytes) / kGiB;
  text = absl::StrFormat("%.2f GiB needed", needed);
  if (row.needed_gib.has_value() && !PrintsAs(needed, *row.needed_gib)) return false;
  if (!row.estimated_max_model_len.has_value() || !row.available_gib.has_value()) return true;
  const Range bytes = BytesOf(*row.available_gib);
  const Range lengths = {EstimateFor(computed, bytes.low), EstimateFor(computed, bytes.high)};
  text += absl::StrFormat(", longest %d..%d", lengths.low, lengths.high);
  return lengths.Has(*row.estimated_max_model_len);
}

// Figures that agree with each other: tokens are concurrency times length (the newer figure, and the older
// one of models with one group).
bool AgreesWithItself(const LogRow& row) {
  if (!row.tokens.has_value() || !row.concurrency.has_value() || !row.max_model_len.has_value()) return false;
  const double ratio = static_cast<double>(*row.tokens) / static_cast<double>(*row.max_model_len);
  return std::fabs(ratio - *row.concurrency) <= Rounding(row) + kHalfCent;
}

CapacityAnswer CheckPlanned(const LogRow& row, const std::vector<LogLaunch>& launches) {
  std::string first;
  for (const LogLaunch& one : launches) {
    std::string text;
    const std::optional<Computed> computed = Compute(one.launch, text);
    const bool refused = row.needed_gib.has_value() || row.estimated_max_model_len.has_value();
    const bool passed = computed.has_value() &&
                        (refused ? CheckRefused(row, *computed, text) : CheckPrinted(row, *computed, text));
    if (passed) {
      if (!one.assumed.empty()) text += "; not said: " + one.assumed;
      return {CapacityVerdict::kPassed, text};
    }
    if (first.empty()) first = text;
  }
  return {CapacityVerdict::kFailed, first};
}

bool PrintsSomething(const LogRow& row) {
  return row.tokens.has_value() || row.concurrency.has_value() || row.num_blocks.has_value() ||
         row.needed_gib.has_value() || row.estimated_max_model_len.has_value();
}

std::string PrintedText(const LogRow& row) {
  std::string text = "printed";
  if (row.tokens.has_value()) text += absl::StrFormat(" %s tokens", WithCommas(*row.tokens));
  if (row.concurrency.has_value()) text += absl::StrFormat(" %.2fx", *row.concurrency);
  if (row.num_blocks.has_value()) text += absl::StrFormat(" %d blocks", *row.num_blocks);
  if (row.needed_gib.has_value()) text += absl::StrFormat(" %.2f GiB needed", *row.needed_gib);
  if (row.estimated_max_model_len.has_value())
    text += absl::StrFormat(" longest %d", *row.estimated_max_model_len);
  return text;
}

// "3 padding layers, 4.35%" of every line, against the lines of the plans.
CapacityAnswer CheckPadding(const LogRow& row, const LogModels& models);

}  // namespace

CapacityAnswer CheckCapacity(const LogRow& row, const LogModels& models) {
  if (row.check_kind.empty()) return {CapacityVerdict::kSkipped, "too few inputs (check_kind null)"};
  if (!PrintsSomething(row)) return CheckPadding(row, models);
  const auto launches = LaunchesOf(row, models);
  CapacityAnswer answer;
  if (launches.ok()) {
    answer = CheckPlanned(row, *launches);
  } else {
    answer.text = std::string(launches.status().message());
  }
  if (answer.verdict == CapacityVerdict::kFailed && row.check_kind == "consistency" &&
      AgreesWithItself(row)) {
    return {CapacityVerdict::kPassed,
            absl::StrFormat("%s agree with each other; not recomputed: %s", PrintedText(row), answer.text)};
  }
  if (answer.verdict == CapacityVerdict::kFailed)
    answer.text = PrintedText(row) + ", computed " + answer.text;
  return answer;
}

namespace {

// The padding that uniform groups bring, as the engine logs it: layers, and their share of the group's own.
struct Padding {
  std::int64_t layers = 0;
  double percent = 0;
};

std::vector<Padding> PaddingsIn(const std::vector<std::string>& lines) {
  std::vector<Padding> found;
  for (const std::string& line : lines) {
    const std::size_t at = line.find(" padding layers");
    const std::size_t end = line.rfind('%');
    if (at == std::string::npos || end == std::string::npos || end < at) continue;
    const std::size_t begin = line.rfind(' ', at - 1);
    const std::size_t number = line.find_last_not_of("0123456789.", end - 1);
    Padding padding;
    padding.layers = std::atoll(line.c_str() + (begin == std::string::npos ? 0 : begin));
    padding.percent = std::atof(line.c_str() + (number == std::string::npos ? 0 : number + 1));
    found.push_back(padding);
  }
  return found;
}

CapacityAnswer CheckPadding(const LogRow& row, const LogModels& models) {
  const std::vector<Padding> printed = PaddingsIn(row.other_lines);
  if (printed.empty()) return {CapacityVerdict::kSkipped, "no figure to recompute"};
  LogRow with = row;
  // The number of drafted tokens does not change the groups; the row may leave it out.
  if (!with.spec_method.empty() && !with.spec_tokens.has_value()) with.spec_tokens = 1;
  LogRow without = row;
  without.spec_method.clear();
  std::vector<std::string> lines;
  for (const LogRow& one : {without, with}) {
    const auto launches = LaunchesOf(one, models);
    if (!launches.ok()) return {CapacityVerdict::kFailed, std::string(launches.status().message())};
    const auto question = EngineCaseOf(launches->front().launch, {kAmple});
    if (!question.ok()) return {CapacityVerdict::kFailed, std::string(question.status().message())};
    const auto plan = vllm::PlanEngine(question->engine_case, launches->front().launch.release.version());
    lines.insert(lines.end(), plan.log.begin(), plan.log.end());
  }
  const std::vector<Padding> computed = PaddingsIn(lines);
  for (const Padding& one : printed) {
    const bool known = std::any_of(computed.begin(), computed.end(), [&](const Padding& other) {
      return other.layers == one.layers && PrintsAs(other.percent, one.percent);
    });
    if (!known) {
      return {CapacityVerdict::kFailed,
              absl::StrFormat("%d padding layers of %.2f%% are in no plan", one.layers, one.percent)};
    }
  }
  return {CapacityVerdict::kPassed, absl::StrFormat("%d lines about padding", printed.size())};
}

}  // namespace
}  // namespace kvasir
