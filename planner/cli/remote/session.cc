#include "planner/cli/remote/session.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "planner/cli/commands.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

constexpr std::array kSessionFlags = {
    Flag{"server", "HOST:PORT", "the planner service ($KVASIR_SERVER, else 127.0.0.1:7450)"},
    Flag{"deployment", "NAME", "name of the deployment (default)"},
    Flag{"timeout", "TIME", "how long an answer may take: 500ms, 30s, 2m (30s)"},
    Flag{"output", "FORM", "table or json (table)"},
};

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kDurationMsMax = 24 * kHourMs;

}  // namespace

std::vector<Flag> WithSessionFlags(std::span<const Flag> own) {
  std::vector<Flag> flags(own.begin(), own.end());
  flags.insert(flags.end(), kSessionFlags.begin(), kSessionFlags.end());
  return flags;
}

absl::StatusOr<Session> OpenSession(const Console& console, const CommandLine& line, bool has_text) {
  Session session;
  session.server =
      line.ValueOr("server", console.variable("KVASIR_SERVER").value_or(std::string(kServerDefault)));
  session.deployment = line.ValueOr("deployment", "default");
  session.output = line.ValueOr("output", "table");
  KVASIR_RETURN_IF_ERROR(CheckOutput(session.output, has_text));
  KVASIR_ASSIGN_OR_RETURN(session.timeout, DurationOr(line, "timeout", session.timeout));
  KVASIR_ASSIGN_OR_RETURN(const Address address, ParseAddress(session.server));
  session.channel = MakeChannel(address);
  return session;
}

int ServiceFailure(const Console& console, std::string_view command, const absl::Status& status) {
  const TypedError error = ErrorOf(status);
  console.err << absl::StrFormat("%s failed   %s\n", command, error.reason);
  if (!error.message.empty()) console.err << "  " << error.message << "\n";
  TextTable table("ll");
  if (!error.field.empty()) table.Row({"field", error.field});
  for (const auto& [name, value] : error.metadata) table.Row({name, value});
  console.err << table.Text(4);
  // A name that leads nowhere is the caller's; a broken file behind a good name is not.
  const bool callers =
      (error.code == absl::StatusCode::kInvalidArgument && error.reason != reason::kCheckpointInvalid) ||
      error.reason == reason::kModelUnknown || error.reason == reason::kCheckpointNotFound;
  return callers ? kExitBadUsage : kExitServiceFailure;
}

absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  constexpr std::array kUnits = {std::pair{std::string_view("ms"), std::int64_t{1}},
                                 std::pair{std::string_view("s"), std::int64_t{1000}},
                                 std::pair{std::string_view("m"), std::int64_t{60'000}},
                                 std::pair{std::string_view("h"), kHourMs}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<std::int64_t> number = ParseInt(text.substr(0, text.size() - unit.size()));
    if (number.has_value() && *number >= 0 && *number <= kDurationMsMax / factor) {
      return std::chrono::milliseconds(*number * factor);
    }
  }
  return absl::InvalidArgumentError(absl::StrFormat("time \"%s\": write it like 500ms, 30s, 2m or 1h", text));
}

absl::StatusOr<std::chrono::milliseconds> DurationOr(const CommandLine& line, std::string_view flag,
                                                     std::chrono::milliseconds fallback) {
  const std::optional<std::string> text = line.Value(flag);
  if (!text.has_value()) return fallback;
  absl::StatusOr<std::chrono::milliseconds> time = ParseDuration(*text);
  if (time.ok()) return time;
  return absl::InvalidArgumentError(absl::StrFormat("--%s: %s", flag, std::string(time.status().message())));
}

std::string SecondsText(std::chrono::milliseconds time) {
  const std::int64_t tenths = (time.count() + 50) / 100;
  return absl::StrFormat("%d.%d s", tenths / 10, tenths % 10);
}

}  // namespace kvasir::cli
