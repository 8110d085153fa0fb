// kvasir validate under a vllm ruleset: whether the engine would take a launch command, our own flags or
// explicit specs, whatever memory it will have. What a pipeline asks before a roll-out.
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/cli/commands.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/show_engine.h"
#include "planner/request/engine_answer.h"

namespace kvasir::cli {
namespace {

int Answer(const Console& console, const EngineAsk& ask, const std::string& form) {
  const EngineAnswer answer = AnswerOf(ask.engine_case, ask.release, {}, std::nullopt);
  if (form == "json") {
    console.out << EngineVerdictJson(ask, absl::OkStatus(), &answer);
  } else {
    ShowEngineVerdict(console, ask, answer);
  }
  return answer.verdict == EngineVerdict::kFits ? kExitOk : kExitRefused;
}

absl::Status UnknownFlags(const std::vector<UnknownFlag>& unknown) {
  std::string words;
  for (const UnknownFlag& flag : unknown) {
    words += (words.empty() ? "" : ", ") + flag.word;
    if (!flag.nearest.empty()) words += " (did you mean " + flag.nearest + "?)";
  }
  return FieldError(reason::kUnknownValue, unknown.front().word,
                    absl::StrFormat("not flags of the engine as it is known here: %s; correct them, or leave "
                                    "--strict-flags away",
                                    words));
}

}  // namespace

int RunEngineValidate(const Console& console, const CommandLine& line, const std::string& form) {
  absl::StatusOr<EngineAsk> ask = line.Has("specs") ? ReadEngineSpecs(line) : ReadEngineLaunch(line);
  if (!ask.ok()) return BadUsage(console, "validate", ask.status());
  ask->rules_only = true;
  if (!ask->launch.has_value()) {
    for (vllm::EngineWorker& worker : ask->engine_case.workers) worker.available_bytes = kAmpleBytes;
    return Answer(console, *ask, form);
  }
  bool refused = false;
  absl::Status status = CompleteEngineAsk(line, *ask, refused);
  if (status.ok() && line.Has("strict-flags") && !ask->command.unknown.empty()) {
    status = UnknownFlags(ask->command.unknown);
    refused = true;
  }
  if (status.ok()) return Answer(console, *ask, form);
  if (!refused) return BadUsage(console, "validate", status);
  if (form == "json") {
    console.out << EngineVerdictJson(*ask, status, nullptr);
  } else {
    ShowEngineRefusal(console, *ask, status);
  }
  return kExitRefused;
}

}  // namespace kvasir::cli
