// What `kvasir plan` and `validate` ask of a vllm ruleset: a pasted launch command, our own flags, or
// explicit specs.
#ifndef KVASIR_PLANNER_CLI_ENGINE_ASK_H_
#define KVASIR_PLANNER_CLI_ENGINE_ASK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/cli/command_line.h"
#include "planner/cli/plan_question.h"
#include "planner/request/engine_budget.h"
#include "planner/request/engine_settings.h"
#include "planner/request/engine_specs.h"
#include "planner/request/launch_command.h"

namespace kvasir::cli {

// Where the memory comes from, and how much.
struct EngineMemory {
  std::vector<std::int64_t> bytes;          // as EngineCaseOf takes them
  std::optional<std::int64_t> most;         // with a range: the upper end of one worker's
  std::optional<EngineBudget> budget = {};  // of a device
  std::string said;                         // "--kv-memory", "--kv-cache-memory-bytes"
};

struct EngineAsk {
  EngineRelease release;
  std::optional<EngineLaunch> launch;  // not with --specs
  LaunchCommand command;               // of a pasted command, else empty
  std::optional<EngineQuestion> question;
  vllm::EngineCase engine_case;  // what is planned
  EngineMemory memory;
  std::vector<std::string> notes;  // sentences: models that were taken for others, files that were read
  bool rules_only = false;         // validate: judged with ample memory, whatever was given
};

// The flags of a vllm ruleset that both commands take.
[[nodiscard]] std::span<const Flag> EngineFlags();

// InvalidArgument: words that do not stand after "--".
[[nodiscard]] absl::Status CheckLaunchWords(const CommandLine& line, std::span<const std::string> args);

// InvalidArgument: a flag that says something of an engine, where none is asked and it would be passed over.
[[nodiscard]] absl::Status CheckNativeFlags(const CommandLine& line);

// "vllm-2026-08", "vllm-2026-11".
[[nodiscard]] bool IsEngineRuleset(std::string_view name);
[[nodiscard]] absl::StatusOr<vllm::EngineVersion> EngineVersionOf(std::string_view name);

// Whether the command line asks a vllm ruleset: words after "--", --specs, or such a --ruleset.
[[nodiscard]] bool AsksEngine(const CommandLine& line);

// The pasted command, or our own flags, with models found and memory not yet known. Errors of usage.
[[nodiscard]] absl::StatusOr<EngineAsk> ReadEngineLaunch(const CommandLine& line);

// Fills question, case and memory (none is asked for with rules_only). `refused` is set where the engine
// itself would refuse the options: the status then is its reason, otherwise an error of usage.
[[nodiscard]] absl::Status CompleteEngineAsk(const CommandLine& line, EngineAsk& ask, bool& refused);

// --specs FILE: a case as the engine would dump it. Errors of usage.
[[nodiscard]] absl::StatusOr<EngineAsk> ReadEngineSpecs(const CommandLine& line);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_ENGINE_ASK_H_
