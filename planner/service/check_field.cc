#include "planner/service/check_field.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::size_t kNameBytesMax = 63;  // fits a DNS label

bool IsNameCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

}  // namespace

absl::Status CheckRange(std::string_view field, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) {
    return absl::OkStatus();
  }
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is %d; give %d to %d", field, value, min, max));
}

absl::Status CheckTextBytes(std::string_view field, std::string_view text, std::int64_t max) {
  if (static_cast<std::int64_t>(text.size()) <= max) {
    return absl::OkStatus();
  }
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s has %d bytes; give at most %d", field, text.size(), max));
}

absl::Status CheckCount(std::string_view field, std::int64_t count, std::int64_t max) {
  if (count <= max) {
    return absl::OkStatus();
  }
  return FieldError(reason::kTooManyItems, field,
                    absl::StrFormat("%s has %d items; give at most %d", field, count, max));
}

absl::Status MissingField(std::string_view field, std::string_view what) {
  return FieldError(reason::kMissingField, field, absl::StrFormat("%s is missing; give %s", field, what));
}

absl::Status CheckDeploymentName(std::string_view field, const std::string& name) {
  if (name.empty()) {
    return MissingField(field, "the name of a deployment");
  }
  if (name.size() > kNameBytesMax || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return FieldError(reason::kBadName, field,
                      absl::StrFormat("%s is \"%s\"; give 1 to %d characters of a-z, 0-9 and -", field,
                                      name.substr(0, kNameBytesMax), kNameBytesMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> DurationMs(std::string_view field, bool present,
                                        const google::protobuf::Duration& duration,
                                        const DurationRange& range) {
  if (!present) {
    return range.default_ms;
  }
  // Beyond these bounds milliseconds would overflow, and the message's own limits are crossed.
  constexpr std::int64_t kSecondsMax = 1'000'000'000;
  const bool sane = duration.seconds() >= 0 && duration.seconds() <= kSecondsMax && duration.nanos() >= 0 &&
                    duration.nanos() < 1'000'000'000;
  const std::int64_t ms = sane ? duration.seconds() * 1000 + duration.nanos() / 1'000'000 : -1;
  if (ms >= range.min_ms && ms <= range.max_ms) {
    return ms;
  }
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is %d s and %d ns; give %d ms to %d ms", field, duration.seconds(),
                                    duration.nanos(), range.min_ms, range.max_ms));
}

}  // namespace kvasir
