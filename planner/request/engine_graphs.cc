#include "planner/request/engine_graphs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/request/backends.h"

namespace kvasir {
namespace {

// A mode's two halves: graphs of the whole pass for batches of prefill and decode, and for decode alone.
struct Mode {
  std::string_view name;
  bool full_mixed = false;
  bool full_decode = false;
};
constexpr std::array kModes = {Mode{"NONE"}, Mode{"PIECEWISE"}, Mode{"FULL", true, true},
                               Mode{"FULL_DECODE_ONLY", false, true},
                               Mode{"FULL_AND_PIECEWISE", false, true}};

std::string Upper(std::string word) {
  for (char& c : word) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return word;
}

// The least that the rows behind the backend's name allow. A row for several kinds of cache states the lesser
// of its kernels, so it is not judged.
std::optional<GraphClass> GraphsOf(const std::string& backend) {
  std::optional<GraphClass> least;
  for (const BackendRow* row : RowsOfEngine(backend)) {
    if (row->engine.find(' ') != std::string_view::npos && row->facts.layouts.size() > 1) return std::nullopt;
    least = std::min(least.value_or(row->graphs), row->graphs);
  }
  return least;
}

}  // namespace

absl::Status CheckEngineGraphs(const EngineLaunch& launch, EngineSettings& settings) {
  if (!launch.options.cudagraph_mode.has_value() || launch.options.enforce_eager.value_or(false))
    return absl::OkStatus();
  const std::string word = Upper(*launch.options.cudagraph_mode);
  const auto* mode =
      std::find_if(kModes.begin(), kModes.end(), [&](const Mode& known) { return known.name == word; });
  if (mode == kModes.end()) return absl::OkStatus();  // the flag's own words were checked where it was read
  const std::optional<GraphClass> graphs = GraphsOf(settings.backend);
  if (!graphs.has_value()) return absl::OkStatus();
  const std::string allows =
      absl::StrFormat("graphs of %s: %s", settings.backend, std::string(GraphClassName(*graphs)));
  if (mode->full_mixed && *graphs == GraphClass::kNever) {
    return FieldError(
        reason::kConflictingFields, "--compilation-config.cudagraph_mode",
        absl::StrFormat(
            "--compilation-config.cudagraph_mode FULL with %s, which keeps no graph of its own; the "
            "engine raises ValueError; use PIECEWISE or NONE, or another --attention-backend",
            settings.backend));
  }
  std::string_view taken = mode->name;
  if (mode->full_mixed && *graphs != GraphClass::kAlways) taken = "FULL_AND_PIECEWISE";
  const bool drafts = settings.spec_tokens > 0;
  const GraphClass least = drafts ? GraphClass::kUniform : GraphClass::kSingleToken;
  if (mode->full_decode && *graphs < least) taken = "PIECEWISE";
  if (taken != mode->name) {
    settings.warnings.push_back(absl::StrFormat("cudagraph_mode %s becomes %s: %s%s", std::string(mode->name),
                                                std::string(taken), allows,
                                                drafts ? ", and a step verifies several tokens" : ""));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
