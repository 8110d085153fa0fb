// kvasir version.
#include <ostream>

#include "absl/strings/str_format.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/rulesets/make_plan.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::cli {

int RunVersion(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line = CommandLine::Parse({}, {}, args);
  if (!line.ok()) return BadUsage(console, "version", line.status());
  console.out << absl::StrFormat("kvasir %s, rulesets:", KVASIR_VERSION);
  for (const std::string& name : RulesetNames()) console.out << " " << name;
  for (const auto version : {vllm::EngineVersion::k2026_08, vllm::EngineVersion::k2026_11}) {
    console.out << " " << vllm::EngineVersionName(version);
  }
  console.out << "\n";
  return kExitOk;
}

}  // namespace kvasir::cli
