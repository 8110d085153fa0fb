#include "planner/service/planner_flags.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

struct Row {
  std::string_view name;
  std::string_view value;  // in the help text; empty: a switch
  std::string_view help;
  std::string PlannerFlags::* text = nullptr;
  bool PlannerFlags::* flag = nullptr;
  std::int64_t PlannerFlags::* number = nullptr;
  std::int64_t max = 0;  // of a number; the least is 0
};

constexpr std::array kRows = {
    Row{"listen", "HOST:PORT", "where to serve; port 0 lets the system choose (127.0.0.1:7450)",
        &PlannerFlags::listen},
    Row{"state-dir", "DIR", "where deployments are remembered ($XDG_STATE_HOME/kvasir/planner)",
        &PlannerFlags::state_dir},
    Row{"insecure", "", "serve on an address that is not loopback, without TLS", nullptr,
        &PlannerFlags::insecure},
    Row{"reflection", "", "serve gRPC reflection", nullptr, &PlannerFlags::reflection},
    Row{"threads", "N", "calls answered at a time, 1 to 64 (4); half as many sweeps beside them", nullptr,
        nullptr, &PlannerFlags::threads, 64},
    Row{"grace-seconds", "N", "after SIGTERM: NOT_SERVING so long before calls are refused (0)", nullptr,
        nullptr, &PlannerFlags::grace_seconds, 3600},
    Row{"drain-seconds", "N", "then: so long for calls and applies that run (10)", nullptr, nullptr,
        &PlannerFlags::drain_seconds, 3600},
    Row{"help", "", "show this", nullptr, &PlannerFlags::help},
};

const Row* FindRow(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return &row;
    }
  }
  return nullptr;
}

absl::Status SetNumber(const Row& row, std::string_view text, PlannerFlags& flags) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > row.max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--%s is \"%s\"; give 0 to %d", row.name, text, row.max));
  }
  flags.*row.number = value;
  return absl::OkStatus();
}

}  // namespace

std::string PlannerHelp() {
  std::string text = "kvasir-planner serves kvasir.planner.v1.PlannerService.\n\n";
  for (const Row& row : kRows) {
    const std::string left = row.value.empty() ? absl::StrFormat("--%s", row.name)
                                               : absl::StrFormat("--%s %s", row.name, row.value);
    text += absl::StrFormat("  %-22s %s\n", left, row.help);
  }
  return text +
         "\nThe first line of the output is \"listening on HOST:PORT\". SIGTERM and SIGINT end it in order.\n"
         "Exit codes: 0 ended by a signal, 2 bad usage, 4 cannot serve (port, state directory).\n";
}

absl::StatusOr<PlannerFlags> ParsePlannerFlags(std::span<const std::string> args) {
  PlannerFlags flags;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    const std::size_t equals = arg.find('=');
    const Row* row =
        arg.starts_with("--") ? FindRow(arg.substr(2, equals == arg.npos ? equals : equals - 2)) : nullptr;
    if (row == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat("unknown flag %s; --help lists them", arg));
    }
    if (row->flag != nullptr) {
      if (equals != arg.npos) {
        return absl::InvalidArgumentError(absl::StrFormat("--%s takes no value", row->name));
      }
      flags.*row->flag = true;
      continue;
    }
    if (equals == arg.npos && ++i == args.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("--%s needs a value: %s", row->name, row->value));
    }
    const std::string_view value = equals == arg.npos ? std::string_view(args[i]) : arg.substr(equals + 1);
    if (row->text != nullptr) {
      flags.*row->text = std::string(value);
    } else if (absl::Status set = SetNumber(*row, value, flags); !set.ok()) {
      return set;
    }
  }
  if (flags.threads < 1) {
    return absl::InvalidArgumentError("--threads is 0; give 1 to 64");
  }
  return flags;
}

absl::StatusOr<std::string> DefaultStateDir(const char* xdg_state_home, const char* home) {
  if (xdg_state_home != nullptr && *xdg_state_home != '\0') {
    return absl::StrFormat("%s/kvasir/planner", xdg_state_home);
  }
  if (home != nullptr && *home != '\0') {
    return absl::StrFormat("%s/.local/state/kvasir/planner", home);
  }
  return absl::FailedPreconditionError("neither XDG_STATE_HOME nor HOME is set; give --state-dir");
}

}  // namespace kvasir
