#include "planner/rulesets/vllm/stage_layers.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

namespace kvasir::vllm {
namespace {

// Python's int(): an optional sign and digits.
std::optional<std::int64_t> WholeNumber(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

StageRange LayersOfStage(std::int64_t layers, std::int64_t stage, std::int64_t stages) {
  const std::int64_t share = layers / stages;
  const std::int64_t rest = layers % stages;
  // The `rest` stages just before the last have one more; the last has none of it.
  const auto extra_before = [&](std::int64_t s) {
    return std::clamp<std::int64_t>(s - (stages - 1 - rest), 0, rest);
  };
  return {share * stage + extra_before(stage), share * (stage + 1) + extra_before(stage + 1)};
}

EngineResult<std::int64_t> LayerIndexOfName(std::string_view name) {
  std::optional<std::int64_t> index;
  for (std::string_view rest = name;;) {
    const std::size_t dot = rest.find('.');
    if (const auto number = WholeNumber(rest.substr(0, dot)); number.has_value()) {
      if (index.has_value()) {
        return PlanFailure(
            EngineErrorKind::kAssertionError,
            "layer name " + std::string(name) + " holds several numbers; the engine expects one");
      }
      index = number;
    }
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (!index.has_value()) {
    return PlanFailure(EngineErrorKind::kAssertionError,
                       "layer name " + std::string(name) + " holds no number; the engine expects one");
  }
  return *index;
}

}  // namespace kvasir::vllm
