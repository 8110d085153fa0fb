// Checks of single values that came over the wire. Each names the field, the value and the limit.
#ifndef KVASIR_PLANNER_SERVICE_CHECK_FIELD_H_
#define KVASIR_PLANNER_SERVICE_CHECK_FIELD_H_

#include <google/protobuf/duration.pb.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir {

// VALUE_OUT_OF_RANGE.
[[nodiscard]] absl::Status CheckRange(std::string_view field, std::int64_t value, std::int64_t min,
                                      std::int64_t max);
// VALUE_OUT_OF_RANGE; the limit counts bytes.
[[nodiscard]] absl::Status CheckTextBytes(std::string_view field, std::string_view text, std::int64_t max);
// TOO_MANY_ITEMS.
[[nodiscard]] absl::Status CheckCount(std::string_view field, std::int64_t count, std::int64_t max);
// MISSING_FIELD.
[[nodiscard]] absl::Status MissingField(std::string_view field, std::string_view what);
// MISSING_FIELD or BAD_NAME: 1 to 63 characters of [a-z0-9-].
[[nodiscard]] absl::Status CheckDeploymentName(std::string_view field, const std::string& name);

struct DurationRange {
  std::int64_t min_ms = 0;
  std::int64_t max_ms = 0;
  std::int64_t default_ms = 0;
};
// Milliseconds, rounded down; the default where `present` is false. VALUE_OUT_OF_RANGE.
[[nodiscard]] absl::StatusOr<std::int64_t> DurationMs(std::string_view field, bool present,
                                                      const google::protobuf::Duration& duration,
                                                      const DurationRange& range);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_SERVICE_CHECK_FIELD_H_
