#include "worker/service/worker_flags.h"

#include <charconv>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

constexpr std::int64_t kRanksPerWorkerMax = 64;
constexpr std::int64_t kDrainSecondsMax = 3600;

struct Flag {
  std::string_view name;
  bool takes_value = true;
  std::string_view help;
  std::function<absl::Status(const std::string& value, WorkerFlags& flags)> set;
};

absl::Status Bad(std::string_view name, const std::string& value, std::string_view want) {
  return absl::InvalidArgumentError(absl::StrFormat("--%s=%s; want %s", name, value, want));
}

absl::Status SetInteger(std::string_view name, const std::string& value, std::int64_t max,
                        std::int64_t& out) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error == std::errc() && end == value.data() + value.size() && out >= 0 && out <= max)
    return absl::OkStatus();
  return Bad(name, value, absl::StrFormat("a number from 0 to %d", max));
}

absl::Status SetRanks(const std::string& value, WorkerFlags& flags) {
  KVASIR_RETURN_IF_ERROR(SetInteger("ranks", value, kRanksPerWorkerMax, flags.ranks));
  return flags.ranks > 0 ? absl::OkStatus() : Bad("ranks", value, "at least 1");
}

absl::Status SetBackend(const std::string& value, WorkerFlags& flags) {
  if (value != "auto" && value != "cpu" && value != "cuda") return Bad("backend", value, "auto, cpu or cuda");
  flags.backend = value;
  return absl::OkStatus();
}

absl::Status SetMemory(const std::string& value, WorkerFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(flags.memory, ParseBytes(value));
  return flags.memory.value() > 0 ? absl::OkStatus() : Bad("memory", value, "more than nothing, as in 2GiB");
}

absl::Status SetDrain(const std::string& value, WorkerFlags& flags) {
  std::int64_t seconds = 0;
  KVASIR_RETURN_IF_ERROR(SetInteger("drain-seconds", value, kDrainSecondsMax, seconds));
  flags.drain = std::chrono::seconds(seconds);
  return absl::OkStatus();
}

absl::Status AddFact(const std::string& value, WorkerFlags& flags) {
  const std::size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0) return Bad("fact", value, "name=value");
  flags.facts.push_back({value.substr(0, equals), value.substr(equals + 1)});
  return absl::OkStatus();
}

template <class T>
std::function<absl::Status(const std::string&, WorkerFlags&)> Into(T WorkerFlags::* member) {
  return [member](const std::string& value, WorkerFlags& flags) {
    if constexpr (std::is_same_v<T, bool>) {
      flags.*member = true;
    } else {
      flags.*member = value;
    }
    return absl::OkStatus();
  };
}

const std::vector<Flag>& AllFlags() {
  static const auto& flags = *new std::vector<Flag>{
      {"listen", true, "HOST:PORT of the gRPC server; port 0: the system chooses (127.0.0.1:7451)",
       Into(&WorkerFlags::listen)},
      {"comm-listen", true,
       "HOST:PORT for collectives of other workers' ranks (the host of --listen, any port)",
       Into(&WorkerFlags::comm_listen)},
      {"advertise", true, "HOST under which other workers reach this one (the host of --comm-listen)",
       Into(&WorkerFlags::advertise)},
      {"ranks", true, "how many ranks this worker hosts at a time (1)", SetRanks},
      {"backend", true, "auto, cpu or cuda (auto: cuda where there is a device)", SetBackend},
      {"memory", true, "per rank, as in 2GiB (three quarters of the machine's memory over the ranks)",
       SetMemory},
      {"checkpoint-root", true,
       "DIRECTORY below which applies may name checkpoints (none: synthetic weights only)",
       Into(&WorkerFlags::checkpoint_root)},
      {"adaptive-verification", false,
       "verify only as many drafted tokens as pay, by the draft's confidence head and measured steps",
       Into(&WorkerFlags::adaptive_verification)},
      {"drain-seconds", true, "how long running requests may go on after SIGTERM (10)", SetDrain},
      {"insecure", false, "listen on other than loopback addresses; connections are not encrypted",
       Into(&WorkerFlags::insecure)},
      {"reflection", false, "serve gRPC reflection", Into(&WorkerFlags::reflection)},
      {"fact", true, "NAME=VALUE told to the other ranks beside the build's facts; for tests", AddFact},
      {"fault-point", true, "POINT=exit|hang; for tests",
       [](const std::string& value, WorkerFlags& into) { return into.faults.Add(value); }},
      {"version", false, "print the version and exit", Into(&WorkerFlags::version)},
      {"help", false, "print this and exit", Into(&WorkerFlags::help)},
  };
  return flags;
}

const Flag* FindFlag(std::string_view name) {
  for (const Flag& flag : AllFlags()) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Bytes> ParseBytes(const std::string& text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {
      {"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, shift] : kUnits) {
    if (error != std::errc() || name != unit) continue;
    if (number >= 0 && number <= (kArenaBytesMax >> shift)) return Bytes(number << shift);
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("\"%s\" is no size; write a whole number and KiB, MiB, GiB or TiB, as in 2GiB", text));
}

absl::StatusOr<WorkerFlags> ParseWorkerFlags(const std::vector<std::string>& arguments) {
  WorkerFlags flags;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const Flag* flag = name.starts_with("--") ? FindFlag(std::string_view(name).substr(2)) : nullptr;
    if (flag == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat("%s is no flag; see kvasir-worker --help", name));
    }
    std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (flag->takes_value && equals == std::string::npos) {
      if (i + 1 == arguments.size())
        return absl::InvalidArgumentError(absl::StrFormat("%s needs a value", name));
      value = arguments[++i];
    } else if (!flag->takes_value && equals != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrFormat("%s takes no value", name));
    }
    KVASIR_RETURN_IF_ERROR(flag->set(value, flags));
  }
  return flags;
}

std::string WorkerUsage() {
  std::string text = "kvasir-worker: hosts ranks of plans that kvasir-planner applies, and decodes.\n\n";
  for (const Flag& flag : AllFlags()) text += absl::StrFormat("  --%-21s %s\n", flag.name, flag.help);
  text +=
      "\nPrints \"listening on HOST:PORT\" when it serves. SIGTERM drains it.\n"
      "Exit codes: 0 after an orderly end, 2 for a wrong flag, 4 when it cannot serve.\n";
  return text;
}

}  // namespace kvasir
