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
#include "planner/questions/sweep_grid.h"
#include "planner/request/engine_answer.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir {
namespace {

template <class T>
absl::Status CheckAxis(std::string_view name, std::vector<T> axis) {
  std::sort(axis.begin(), axis.end());
  if (std::adjacent_find(axis.begin(), axis.end()) == axis.end()) return absl::OkStatus();
  return FieldError(reason::kDuplicateItem, name,
                    absl::StrFormat("%s has a value twice; give each once", name));
}

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

void AskEngine(const PlanQuestion& question, vllm::EngineVersion version, const std::optional<GpuRow>& device,
               SweepPoint& point) {
  const auto refuse = [&point](const absl::Status& status) { point.why = ErrorOf(status).field; };
  absl::StatusOr<EngineLaunch> launch = LaunchOf(question, ReleaseOf(version));
  if (!launch.ok()) return refuse(launch.status());
  launch->device = device;  // whose kernels are judged too
  const auto asked = EngineCaseOf(*launch, question.options.kv_memory_bytes);
  if (!asked.ok()) return refuse(asked.status());
  const EngineAnswer answer = AnswerOf(asked->engine_case, launch->release, {}, std::nullopt);
  point.context_tokens = asked->settings.max_model_len;
  switch (answer.verdict) {
    case EngineVerdict::kFits:
      point.verdict = SweepVerdict::kFits;
      point.requests = answer.usable_requests();
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

void AskRuleset(const PlanQuestion& question, const std::optional<GpuRow>& device, SweepPoint& point) {
  if (const auto version = vllm::ParseEngineVersion(question.options.ruleset))
    return AskEngine(question, *version, device, point);
  AskNative(question, point);
}

// With what the device leaves at that end; rules are judged first, whatever it leaves.
SweepPoint AskAt(PlanQuestion& question, const GpuRow& device, MemoryEnd end) {
  SweepPoint point;
  point.options = question.options;
  const absl::Status memory = SetMemoryOf(device, end, question);
  if (!memory.ok()) question.options.kv_memory_bytes = {kAnyMemoryBytes};
  AskRuleset(question, device, point);
  if (memory.ok()) {
    point.options.kv_memory_bytes = question.options.kv_memory_bytes;
    return point;
  }
  if (point.verdict == SweepVerdict::kRefused) return point;
  SweepPoint none;
  none.options = point.options;
  none.context_tokens = point.context_tokens;
  const bool full = memory.code() == absl::StatusCode::kFailedPrecondition;
  if (full) none.verdict = SweepVerdict::kDoesNotFit;
  none.why = full ? "weights fill the device" : ErrorOf(memory).field;
  return none;
}

SweepPoint Ask(PlanQuestion& question, const std::optional<GpuRow>& device) {
  SweepPoint point;
  if (!device.has_value()) {
    point.options = question.options;
    AskRuleset(question, device, point);
    point.requests_most = point.requests;
    return point;
  }
  point = AskAt(question, *device, MemoryEnd::kLeast);
  point.device = device->name;
  if (point.verdict == SweepVerdict::kRefused) return point;
  const SweepPoint most = AskAt(question, *device, MemoryEnd::kMost);
  point.requests_most = std::max(point.requests, most.requests);
  if (most.verdict != SweepVerdict::kFits || point.verdict == SweepVerdict::kFits) return point;
  point.verdict = SweepVerdict::kMayFit;
  point.context_tokens = most.context_tokens;
  return point;
}

}  // namespace

std::string_view SweepVerdictName(SweepVerdict verdict) {
  switch (verdict) {
    case SweepVerdict::kFits:
      return "fits";
    case SweepVerdict::kMayFit:
      return "may_fit";
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
  std::vector<std::string_view> devices;
  devices.reserve(axes.devices.size());
  for (const GpuRow& row : axes.devices) devices.push_back(row.name);
  KVASIR_RETURN_IF_ERROR(CheckAxis("device", devices));
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

std::int64_t CountLeftOut(const PlanQuestion& base, const SweepAxes& axes) {
  return Grid(base, axes).size() - CountPoints(base, axes).value_or(0);
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
