#include "worker/service/convert_fields.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::size_t kDeploymentBytesMax = 63;
constexpr std::size_t kShownBytesMax = 64;                     // of a wrong value in a message
constexpr std::int64_t kDurationSecondsMax = 315'576'000'000;  // as protobuf defines durations

std::string Quoted(std::string_view value) {
  std::string shown;
  for (const char c : value.substr(0, kShownBytesMax)) shown += (c >= ' ' && c <= '~') ? c : '?';
  return shown;
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

absl::Status CheckRange(std::string_view field, std::int64_t value, FieldRange range) {
  if (value >= range.min && value <= range.max) return absl::OkStatus();
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is %d; want %d to %d", field, value, range.min, range.max));
}

absl::Status CheckCount(std::string_view field, std::int64_t count, std::int64_t max) {
  if (count <= max) return absl::OkStatus();
  return FieldError(reason::kTooManyItems, field,
                    absl::StrFormat("%s has %d items; at most %d", field, count, max));
}

absl::Status CheckDeployment(std::string_view name) {
  if (name.empty()) {
    return FieldError(reason::kMissingField, "deployment", "deployment is empty; give the deployment's name");
  }
  const bool fine = name.size() <= kDeploymentBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (fine) return absl::OkStatus();
  return FieldError(
      reason::kBadName, "deployment",
      absl::StrFormat("deployment is \"%s\"; want 1 to 63 characters of a-z, 0-9 and -", Quoted(name)));
}

absl::Status CheckPlanId(std::string_view field, std::string_view plan_id) {
  if (plan_id.empty()) {
    return FieldError(reason::kMissingField, field,
                      absl::StrFormat("%s is empty; give the plan's id", field));
  }
  if (plan_id.size() == 64 && std::all_of(plan_id.begin(), plan_id.end(), IsHex)) return absl::OkStatus();
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is \"%s\"; want 64 lower-case hex digits", field, Quoted(plan_id)));
}

absl::StatusOr<Epoch> ToEpoch(std::string_view field, std::int64_t epoch) {
  if (epoch >= 1) return Epoch(epoch);
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is %d; want at least 1", field, epoch));
}

absl::StatusOr<std::chrono::milliseconds> ToMilliseconds(std::string_view field, bool present,
                                                         const google::protobuf::Duration& duration,
                                                         DurationRange range) {
  if (!present && range.min.count() > 0) {
    return FieldError(
        reason::kMissingField, field,
        absl::StrFormat("%s is absent; want %d to %d ms", field, range.min.count(), range.max.count()));
  }
  const bool sound = duration.seconds() >= -kDurationSecondsMax &&
                     duration.seconds() <= kDurationSecondsMax && duration.nanos() > -1'000'000'000 &&
                     duration.nanos() < 1'000'000'000;
  const std::chrono::milliseconds time =
      sound ? std::chrono::milliseconds(duration.seconds() * 1000) +
                  std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(duration.nanos()))
            : std::chrono::milliseconds(-1);
  if (time >= range.min && time <= range.max) return time;
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is %d s and %d ns; want %d to %d ms", field, duration.seconds(),
                                    duration.nanos(), range.min.count(), range.max.count()));
}

google::protobuf::Duration FromNanoseconds(std::chrono::nanoseconds time) {
  google::protobuf::Duration duration;
  duration.set_seconds(time.count() / 1'000'000'000);
  duration.set_nanos(static_cast<std::int32_t>(time.count() % 1'000'000'000));
  return duration;
}

}  // namespace kvasir
