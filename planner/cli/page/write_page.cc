#include "planner/cli/page/write_page.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/find_alternatives.h"
#include "planner/cli/page/plan_page.h"
#include "planner/cli/write_file.h"
#include "planner/core/capacity.h"
#include "planner/request/launch_split.h"

namespace kvasir::cli {
namespace {

// The flags of the question alone: where its answer goes is no part of it.
std::string CommandOf(const CommandLine& line) {
  std::vector<std::string> words = {"kvasir", "plan"};
  for (const Flag& flag : PlanFlags()) {
    const std::optional<std::string> value = line.Value(flag.name);
    if (!value.has_value() || flag.name == "output") continue;
    words.push_back("--" + std::string(flag.name));
    words.push_back(*value);
  }
  return JoinCommand(words);
}

// The same alternatives as in the answer, at the page's lengths.
std::vector<Alternative> AtStops(const PlanQuestion& question, const Planned& planned) {
  Report report = planned.report;
  report.capacity.clear();
  for (const std::int64_t context : PageStops(planned.plan, planned.report.capacity))
    report.capacity.push_back(CapacityAt(planned.plan, context));
  return FindAlternatives(question, report);
}

}  // namespace

absl::Status CheckPageFlag(const CommandLine& line) {
  const std::optional<std::string> file = line.Value("html");
  if (!file.has_value()) return absl::OkStatus();
  if (file->empty())
    return absl::InvalidArgumentError("--html: the file's name is empty; name one like plan.html");
  if (line.Has("emit") || AsksEngine(line)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--html %s: pages show plans of the native ruleset only, with what vLLM admits "
                        "beside them; leave out "
                        "--html, or the launch command, --specs, --emit and --ruleset vllm-*",
                        *file));
  }
  return absl::OkStatus();
}

absl::Status WritePage(const CommandLine& line, const PlanQuestion& question, const PlanOutcome& outcome,
                       const Extras& extras) {
  PageFacts facts{CommandOf(line), extras, {}};
  if (const auto* planned = std::get_if<Planned>(&outcome)) facts.at_stops = AtStops(question, *planned);
  const std::string page = PlanPage(RequestOf(question), outcome, facts);
  const std::string path = line.ValueOr("html", "");
  absl::Status written = WriteFile(path, page);
  if (written.ok()) return written;
  return absl::UnavailableError(absl::StrFormat("--html %s; name a file in a folder that exists and takes it",
                                                std::string(written.message())));
}

}  // namespace kvasir::cli
