#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "absl/strings/str_format.h"
#include "planner/cli/remote/remote_commands.h"

namespace kvasir::cli {
namespace {

constexpr std::array kRemoteCommands = {
    Command{"plan", "--server HOST:PORT", "plan on a planner service", RunPlanOnServer, PlanHelp},
    Command{"apply", "PLAN --workers LIST", "prepare a plan on workers and switch to it", RunApply,
            ApplyHelp},
    Command{"preflight", "PLAN --workers LIST", "prove a plan on workers, then free everything", RunPreflight,
            PreflightHelp},
    Command{"decode", "PROMPT...", "decode prompts on a deployment", RunDecode, DecodeHelp},
    Command{"status", "", "what a deployment is doing", RunStatus, StatusHelp},
    Command{"delete", "", "drain a deployment and free it", RunDelete, DeleteHelp},
};

}  // namespace

int RunRemoteCli(std::span<const std::string> args, const Console& console) {
  for (const Command& command : kRemoteCommands) {
    if (args.empty() || command.name != args[0]) continue;
    const Args rest = args.subspan(1);
    if (std::any_of(rest.begin(), rest.end(),
                    [](std::string_view a) { return a == "--help" || a == "-h"; })) {
      console.out << absl::StrFormat("%s\n\nUsage: kvasir %s %s [flags]\n\n%s", command.summary, command.name,
                                     command.words, command.flags_help());
      return kExitOk;
    }
    return command.run(console, rest);
  }
  console.err << "kvasir-remote is started by kvasir for plan --server, apply, preflight, decode, status and "
                 "delete\n";
  return kExitBadUsage;
}

}  // namespace kvasir::cli
