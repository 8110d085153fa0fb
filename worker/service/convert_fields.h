// Checks of single fields of a request: the value, or an error that names the field, the value and the limit.
#ifndef KVASIR_WORKER_SERVICE_CONVERT_FIELDS_H_
#define KVASIR_WORKER_SERVICE_CONVERT_FIELDS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "google/protobuf/duration.pb.h"

namespace kvasir {

// Inclusive.
struct FieldRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// VALUE_OUT_OF_RANGE.
[[nodiscard]] absl::Status CheckRange(std::string_view field, std::int64_t value, FieldRange range);
// TOO_MANY_ITEMS.
[[nodiscard]] absl::Status CheckCount(std::string_view field, std::int64_t count, std::int64_t max);
// MISSING_FIELD or BAD_NAME: 1 to 63 characters of [a-z0-9-].
[[nodiscard]] absl::Status CheckDeployment(std::string_view name);
// MISSING_FIELD or VALUE_OUT_OF_RANGE: 64 lower-case hex digits.
[[nodiscard]] absl::Status CheckPlanId(std::string_view field, std::string_view plan_id);
// At least 1.
[[nodiscard]] absl::StatusOr<Epoch> ToEpoch(std::string_view field, std::int64_t epoch);

struct DurationRange {
  std::chrono::milliseconds min{0};
  std::chrono::milliseconds max{0};
};
// Whole milliseconds, rounded up. An absent one is MISSING_FIELD unless 0 is in the range.
[[nodiscard]] absl::StatusOr<std::chrono::milliseconds> ToMilliseconds(
    std::string_view field, bool present, const google::protobuf::Duration& duration, DurationRange range);
[[nodiscard]] google::protobuf::Duration FromNanoseconds(std::chrono::nanoseconds time);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_CONVERT_FIELDS_H_
