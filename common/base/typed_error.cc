#include "common/base/typed_error.h"

#include <charconv>
#include <utility>

#include "absl/strings/cord.h"
#include "common/base/check.h"

namespace kvasir {
namespace {

constexpr char kReasonUrl[] = "kvasir.dev/reason";
constexpr char kFieldUrl[] = "kvasir.dev/field";
constexpr char kRetryUrl[] = "kvasir.dev/retry_after_ms";
constexpr char kMetadataPrefix[] = "kvasir.dev/metadata/";

}  // namespace

absl::Status MakeError(const TypedError& error) {
  KVASIR_CHECK(error.code != absl::StatusCode::kOk);
  absl::Status status(error.code, error.message);
  status.SetPayload(kReasonUrl, absl::Cord(error.reason));
  if (!error.field.empty()) {
    status.SetPayload(kFieldUrl, absl::Cord(error.field));
  }
  if (error.retry_after_ms > 0) {
    status.SetPayload(kRetryUrl, absl::Cord(std::to_string(error.retry_after_ms)));
  }
  for (const auto& [name, value] : error.metadata) {
    status.SetPayload(kMetadataPrefix + name, absl::Cord(value));
  }
  return status;
}

absl::Status FieldError(std::string_view reason, std::string_view field, std::string message) {
  return MakeError({.code = absl::StatusCode::kInvalidArgument,
                    .reason = std::string(reason),
                    .message = std::move(message),
                    .field = std::string(field)});
}

TypedError ErrorOf(const absl::Status& status) {
  TypedError error{.code = status.code(), .message = std::string(status.message())};
  const std::string prefix = kMetadataPrefix;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    const std::string name(url);
    const std::string value(payload);
    if (name == kReasonUrl) {
      error.reason = value;
    } else if (name == kFieldUrl) {
      error.field = value;
    } else if (name == kRetryUrl) {
      std::from_chars(value.data(), value.data() + value.size(), error.retry_after_ms);
    } else if (name.compare(0, prefix.size(), prefix) == 0) {
      error.metadata[name.substr(prefix.size())] = value;
    }
  });
  if (error.reason.empty() && !status.ok()) {
    error.reason = absl::StatusCodeToString(status.code());
  }
  return error;
}

std::string ReasonOf(const absl::Status& status) { return status.ok() ? "" : ErrorOf(status).reason; }

absl::Status WithinField(std::string_view prefix, const absl::Status& status) {
  if (status.ok()) {
    return status;
  }
  TypedError error = ErrorOf(status);
  const bool joined = error.field.empty() || error.field.front() == '[';
  error.field = std::string(prefix) + (joined ? "" : ".") + error.field;
  return MakeError(error);
}

absl::Status WithReason(std::string_view reason, std::string_view field, const absl::Status& status) {
  if (status.ok()) {
    return status;
  }
  TypedError error = ErrorOf(status);
  if (error.reason == absl::StatusCodeToString(error.code)) {
    error.reason = std::string(reason);
  }
  if (error.field.empty()) {
    error.field = std::string(field);
  }
  return MakeError(error);
}

}  // namespace kvasir
