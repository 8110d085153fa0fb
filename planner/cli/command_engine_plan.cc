// kvasir plan under a vllm ruleset: a pasted launch command, our own flags, or explicit specs.
#include <ostream>
#include <utility>

#include "planner/cli/commands.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/show_engine.h"
#include "planner/request/engine_answer.h"
#include "planner/request/launch_split.h"
#include "planner/request/launch_text.h"
#include "planner/rulesets/vllm/engine_plan_text.h"

namespace kvasir::cli {
namespace {

int ExitCodeOf(const EngineAnswer& answer) {
  switch (answer.verdict) {
    case EngineVerdict::kFits:
      return kExitOk;
    case EngineVerdict::kDoesNotFit:
      return kExitDoesNotFit;
    case EngineVerdict::kFails:
      return kExitRefused;
  }
  return kExitRefused;
}

int Answer(const Console& console, EngineAsk& ask, const std::string& form) {
  std::vector<std::string> before;
  if (ask.question.has_value()) before = ask.question->log;
  const EngineAnswer answer = AnswerOf(ask.engine_case, ask.release, std::move(before), ask.memory.most);
  if (form == "json") {
    console.out << EngineJson(ask, answer);
  } else if (form == "text") {
    console.out << vllm::ToText(answer.engine_case, answer.plan);
  } else {
    ShowEngine(console, ask, answer);
  }
  return ExitCodeOf(answer);
}

}  // namespace

int RunEnginePlan(const Console& console, const CommandLine& line, const std::string& form) {
  if (line.Has("specs")) {
    absl::StatusOr<EngineAsk> ask = ReadEngineSpecs(line);
    if (!ask.ok()) return BadUsage(console, "plan", ask.status());
    return Answer(console, *ask, form);
  }
  absl::StatusOr<EngineAsk> ask = ReadEngineLaunch(line);
  if (!ask.ok()) return BadUsage(console, "plan", ask.status());
  bool refused = false;
  const absl::Status status = CompleteEngineAsk(line, *ask, refused);
  if (!status.ok() && !refused) return BadUsage(console, "plan", status);
  if (!status.ok()) {
    if (form == "json") {
      console.out << EngineRefusalJson(*ask, status);
    } else {
      ShowEngineRefusal(console, *ask, status);
    }
    return kExitRefused;
  }
  return Answer(console, *ask, form);
}

int RunEmitVllm(const Console& console, const CommandLine& line) {
  const std::string wanted = line.ValueOr("emit", "");
  if (wanted != "vllm") {
    return BadUsage(console, "plan", absl::InvalidArgumentError("--emit " + wanted + ": only vllm is known"));
  }
  const absl::StatusOr<EngineAsk> ask = ReadEngineLaunch(line);
  if (!ask.ok()) return BadUsage(console, "plan", ask.status());
  for (const UnknownFlag& flag : ask->command.unknown) console.err << "left out: " << flag.word << "\n";
  console.out << JoinCommand(LaunchWords(ask->launch->options)) << "\n";
  return kExitOk;
}

}  // namespace kvasir::cli
