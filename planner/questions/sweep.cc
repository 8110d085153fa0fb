#include "planner/questions/sweep.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/core/capacity.h"
#include "planner/core/refusal.h"
#include "planner/core/wide.h"
#include "planner/request/engine_answer.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir {
namespace {

// The axis, or the question's own value where it is empty.
template <class T>
std::vector<T> Values(const std::vector<T>& axis, T own) {
  return axis.empty() ? std::vector<T>{std::move(own)} : axis;
}

template <class T>
absl::Status CheckAxis(std::string_view name, std::vector<T> axis) {
  std::sort(axis.begin(), axis.end());
  if (std::adjacent_find(axis.begin(), axis.end()) == axis.end()) return absl::OkStatus();
  return FieldError(reason::kDuplicateItem, name,
                    absl::StrFormat("%s has a value twice; give each once", name));
}

struct Memory {
  std::vector<std::int64_t> bytes;
  std::optional<GpuRow> device;
};

std::vector<Memory> MemoriesOf(const PlanQuestion& base, const SweepAxes& axes) {
  std::vector<Memory> out;
  out.reserve(axes.devices.size() + axes.kv_memory_bytes.size() + 1);
  for (const GpuRow& device : axes.devices) out.push_back({{}, device});
  for (const std::int64_t bytes : axes.kv_memory_bytes) out.push_back({{bytes}, std::nullopt});
  if (out.empty()) out.push_back({base.options.kv_memory_bytes, std::nullopt});
  return out;
}

// Numbered points; the last axis turns fastest.
class Grid {
 public:
  Grid(const PlanQuestion& base, const SweepAxes& axes)
      : own_(base.options),
        rulesets_(Values(axes.rulesets, own_.ruleset)),
        memories_(MemoriesOf(base, axes)),
        tp_(Values(axes.tp, own_.tp)),
        dcp_(Values(axes.dcp, own_.dcp)),
        blocks_(Values(axes.block_tokens, own_.block_tokens)),
        dtypes_(Values(axes.cache_dtypes, own_.cache_dtype)),
        rollbacks_(Values(axes.state_rollbacks, own_.state_rollback)),
        tokens_(Values(axes.draft_tokens, own_.draft_tokens)),
        contexts_(Values(axes.contexts, own_.contexts.empty() ? std::int64_t{0} : own_.contexts.back())) {}

  // Saturates far above kSweepPointsMax: the product of a few long lists is past counting one by one.
  [[nodiscard]] std::int64_t size() const {
    Wide product = 1;
    for (const std::size_t axis :
         {rulesets_.size(), memories_.size(), tp_.size(), dcp_.size(), blocks_.size(), dtypes_.size(),
          rollbacks_.size(), tokens_.size(), contexts_.size()}) {
      product = std::min<Wide>(product * static_cast<Wide>(axis), Wide{1} << 40);
    }
    return static_cast<std::int64_t>(product);
  }

  // nullopt: the number is no point, since its dcp does not divide its tp.
  [[nodiscard]] std::optional<PlanOptions> Point(std::int64_t number, std::optional<GpuRow>& device) const {
    auto rest = static_cast<std::size_t>(number);
    const auto take = [&rest](const auto& axis) -> const auto& {
      const std::size_t place = rest % axis.size();
      rest /= axis.size();
      return axis[place];
    };
    PlanOptions out = own_;
    out.contexts = {take(contexts_)};
    out.draft_tokens = take(tokens_);
    out.state_rollback = take(rollbacks_);
    out.cache_dtype = take(dtypes_);
    out.block_tokens = take(blocks_);
    out.dcp = take(dcp_);
    out.tp = take(tp_);
    const Memory& memory = take(memories_);
    out.kv_memory_bytes = memory.bytes;
    device = memory.device;
    out.ruleset = take(rulesets_);
    if (out.tp > 0 && out.dcp > 0 && out.tp % out.dcp != 0) return std::nullopt;
    return out;
  }

 private:
  PlanOptions own_;
  std::vector<std::string> rulesets_;
  std::vector<Memory> memories_;
  std::vector<std::int64_t> tp_;
  std::vector<std::int64_t> dcp_;
  std::vector<std::int64_t> blocks_;
  std::vector<std::string> dtypes_;
  std::vector<std::string> rollbacks_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> contexts_;
};

std::string ShortText(std::int64_t bytes) { return absl::StrFormat("%d bytes short", bytes); }

void AskNative(const PlanQuestion& question, SweepPoint& point) {
  const PlanOutcome outcome = MakePlan(RequestOf(question));
  if (const auto* refused = std::get_if<Refusals>(&outcome)) {
    point.why = std::string(RuleName(refused->refusals.front().rule));
  } else if (const auto* misfit = std::get_if<DoesNotFit>(&outcome)) {
    point.verdict = SweepVerdict::kDoesNotFit;
    point.context_tokens = misfit->context_tokens;
    point.why = ShortText(misfit->shortfall.value());
  } else {
    const auto& planned = std::get<Planned>(outcome);
    const CapacityRow row = CapacityAt(planned.plan, planned.plan.context_tokens);
    point.verdict = SweepVerdict::kFits;
    point.context_tokens = planned.plan.context_tokens;
    point.requests = row.requests;
    point.bytes_per_request = row.bytes_per_request.value();
    point.plan_id = planned.plan_id;
  }
}

void AskEngine(const PlanQuestion& question, vllm::EngineVersion version, SweepPoint& point) {
  const auto refuse = [&point](const absl::Status& status) { point.why = ErrorOf(status).field; };
  absl::StatusOr<EngineLaunch> launch = LaunchOf(question, ReleaseOf(version));
  if (!launch.ok()) return refuse(launch.status());
  const auto asked = EngineCaseOf(*launch, question.options.kv_memory_bytes);
  if (!asked.ok()) return refuse(asked.status());
  const EngineAnswer answer = AnswerOf(asked->engine_case, launch->release, {}, std::nullopt);
  point.context_tokens = asked->settings.max_model_len;
  switch (answer.verdict) {
    case EngineVerdict::kFits:
      point.verdict = SweepVerdict::kFits;
      point.requests = static_cast<std::int64_t>(answer.least.concurrency);
      return;
    case EngineVerdict::kDoesNotFit:
      point.verdict = SweepVerdict::kDoesNotFit;
      point.why = ShortText(answer.needed_bytes() - answer.given_bytes());
      return;
    case EngineVerdict::kFails:
      point.why = std::string(vllm::EngineErrorKindName(answer.plan.failure->kind));
      return;
  }
}

SweepPoint Ask(PlanQuestion& question, const std::optional<GpuRow>& device) {
  SweepPoint point;
  point.options = question.options;
  if (device.has_value()) {
    point.device = device->name;
    const absl::Status memory = SetMemoryOf(*device, MemoryEnd::kLeast, question);
    if (!memory.ok()) {
      const bool full = memory.code() == absl::StatusCode::kFailedPrecondition;
      point.verdict = full ? SweepVerdict::kDoesNotFit : SweepVerdict::kRefused;
      point.why = full ? "weights fill the device" : ErrorOf(memory).field;
      return point;
    }
    point.options.kv_memory_bytes = question.options.kv_memory_bytes;
  }
  for (const auto version : {vllm::EngineVersion::k2026_08, vllm::EngineVersion::k2026_11}) {
    if (question.options.ruleset != vllm::EngineVersionName(version)) continue;
    AskEngine(question, version, point);
    return point;
  }
  AskNative(question, point);
  return point;
}

}  // namespace

std::string_view SweepVerdictName(SweepVerdict verdict) {
  switch (verdict) {
    case SweepVerdict::kFits:
      return "fits";
    case SweepVerdict::kDoesNotFit:
      return "does_not_fit";
    case SweepVerdict::kRefused:
      return "refused";
  }
  return "invalid";
}

absl::StatusOr<std::int64_t> CountPoints(const PlanQuestion& base, const SweepAxes& axes) {
  KVASIR_RETURN_IF_ERROR(CheckAxis("ruleset", axes.rulesets));
  KVASIR_RETURN_IF_ERROR(CheckAxis("tp", axes.tp));
  KVASIR_RETURN_IF_ERROR(CheckAxis("dcp", axes.dcp));
  KVASIR_RETURN_IF_ERROR(CheckAxis("block_tokens", axes.block_tokens));
  KVASIR_RETURN_IF_ERROR(CheckAxis("cache_dtype", axes.cache_dtypes));
  KVASIR_RETURN_IF_ERROR(CheckAxis("state_rollback", axes.state_rollbacks));
  KVASIR_RETURN_IF_ERROR(CheckAxis("draft_tokens", axes.draft_tokens));
  KVASIR_RETURN_IF_ERROR(CheckAxis("context", axes.contexts));
  KVASIR_RETURN_IF_ERROR(CheckAxis("kv_memory", axes.kv_memory_bytes));
  const Grid grid(base, axes);
  if (grid.size() > kSweepPointsMax) {
    return FieldError(
        reason::kValueOutOfRange, "axes",
        absl::StrFormat("the grid has %d points; at most %d are swept at a time: shorten a list", grid.size(),
                        kSweepPointsMax));
  }
  std::int64_t points = 0;
  std::optional<GpuRow> device;
  for (std::int64_t number = 0; number < grid.size(); ++number) {
    if (grid.Point(number, device).has_value()) ++points;
  }
  if (points == 0) {
    return FieldError(reason::kConflictingFields, "dcp",
                      "no dcp of the grid divides a tp of it, so there is nothing to sweep; give dcp 1, or "
                      "divisors of tp");
  }
  return points;
}

std::vector<SweepPoint> Sweep(const PlanQuestion& base, const SweepAxes& axes, const SweepStep& step) {
  std::vector<SweepPoint> out;
  const absl::StatusOr<std::int64_t> points = CountPoints(base, axes);
  if (!points.ok()) return out;
  const Grid grid(base, axes);
  SweepProgress progress{.done = 0, .points = *points};
  PlanQuestion question = base;
  for (std::int64_t number = 0; number < grid.size(); ++number) {
    std::optional<GpuRow> device;
    std::optional<PlanOptions> options = grid.Point(number, device);
    if (!options.has_value()) continue;
    question.options = *std::move(options);
    out.push_back(Ask(question, device));
    ++progress.done;
    if (step && !step(out.back(), progress)) break;
  }
  MarkFront(out);
  return out;
}

void MarkFront(std::vector<SweepPoint>& points) {
  // The most requests of each number of ranks, by length.
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> most;
  for (const SweepPoint& point : points) {
    if (point.verdict != SweepVerdict::kFits) continue;
    std::int64_t& requests = most[point.context_tokens][point.options.tp];
    requests = std::max(requests, point.requests);
  }
  for (SweepPoint& point : points) {
    point.on_front = point.verdict == SweepVerdict::kFits;
    if (!point.on_front) continue;
    for (const auto& [ranks, requests] : most[point.context_tokens]) {
      if (ranks < point.options.tp && requests >= point.requests) point.on_front = false;
      if (ranks == point.options.tp && requests > point.requests) point.on_front = false;
    }
  }
}

}  // namespace kvasir
