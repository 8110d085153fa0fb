// An absl::Status that also says, for programs, which error it is: a reason, the path of the wrong field, and
// the values that the message shows. They travel as payloads, so that code which knows no gRPC can make them
// and common/rpc can put them on the wire.
#ifndef KVASIR_COMMON_BASE_TYPED_ERROR_H_
#define KVASIR_COMMON_BASE_TYPED_ERROR_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvasir {

struct TypedError {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string reason = {};   // UPPER_SNAKE_CASE; common/base/error_reasons.h has the list
  std::string message = {};  // what was wrong with the values, then what to do; no trailing period
  std::string field =
      {};  // path in the request: "options.topology.tp"; empty when no field is wrong in itself
  std::map<std::string, std::string> metadata =
      {};                           // snake_case name -> value, in any case the message's values
  std::int64_t retry_after_ms = 0;  // 0: no advice
};

[[nodiscard]] absl::Status MakeError(const TypedError& error);

// Shorthand for the commonest case: InvalidArgument for one field.
[[nodiscard]] absl::Status FieldError(std::string_view reason, std::string_view field, std::string message);

// The inverse of MakeError, total: a status made elsewhere gets its code's name as reason and no field.
[[nodiscard]] TypedError ErrorOf(const absl::Status& status);

// ErrorOf(status).reason; empty for OK.
[[nodiscard]] std::string ReasonOf(const absl::Status& status);

// The same error with `prefix` and a dot before its field; an error without a field gets `prefix`. For
// converters of nested messages.
[[nodiscard]] absl::Status WithinField(std::string_view prefix, const absl::Status& status);

// The same error with reason `reason` and field `field` where it has none: for errors of parsers that know
// neither.
[[nodiscard]] absl::Status WithReason(std::string_view reason, std::string_view field,
                                      const absl::Status& status);

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_TYPED_ERROR_H_
