#include "common/rpc/status_codec.h"

#include <string>

#include "common/base/typed_error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kvasir {
namespace {

// gRPC refuses trailers above 8 KiB in all; a message or value from outside must not break the error itself.
constexpr std::size_t kTextBytesMax = 1024;

std::string Clipped(const std::string& text) {
  return text.size() <= kTextBytesMax ? text : text.substr(0, kTextBytesMax - 3) + "...";
}

// Protocol Buffers strings are UTF-8; what a peer sent need not be.
std::string Ascii(const std::string& text) {
  std::string clean = Clipped(text);
  for (char& c : clean) {
    if ((c < ' ' && c != '\n' && c != '\t') || c > '~') {
      c = '?';
    }
  }
  return clean;
}

void AddDetail(google::rpc::Status& status, const google::protobuf::Message& detail) {
  status.add_details()->PackFrom(detail);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  const TypedError error = ErrorOf(status);
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(error.code));
  wire.set_message(Ascii(error.message));

  google::rpc::ErrorInfo info;
  info.set_reason(Ascii(error.reason));
  info.set_domain(kErrorDomain);
  for (const auto& [name, value] : error.metadata) {
    (*info.mutable_metadata())[Ascii(name)] = Ascii(value);
  }
  AddDetail(wire, info);
  if (error.code == absl::StatusCode::kFailedPrecondition) {
    google::rpc::PreconditionFailure failure;
    google::rpc::PreconditionFailure::Violation* violation = failure.add_violations();
    violation->set_type(Ascii(error.reason));
    violation->set_subject(Ascii(error.field));
    violation->set_description(wire.message());
    AddDetail(wire, failure);
  } else if (!error.field.empty()) {
    google::rpc::BadRequest bad;
    google::rpc::BadRequest::FieldViolation* violation = bad.add_field_violations();
    violation->set_field(Ascii(error.field));
    violation->set_description(wire.message());
    AddDetail(wire, bad);
  }
  if (error.retry_after_ms > 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(error.retry_after_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(error.retry_after_ms % 1000) * 1'000'000);
    AddDetail(wire, retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(error.code), wire.message(), wire.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  absl::Status plain(code, status.error_message());
  google::rpc::Status wire;
  if (status.error_details().empty() || !wire.ParseFromString(status.error_details())) {
    return plain;
  }
  TypedError error{.code = code, .message = status.error_message()};
  for (const google::protobuf::Any& detail : wire.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    google::rpc::PreconditionFailure failure;
    google::rpc::RetryInfo retry;
    if (detail.Is<google::rpc::ErrorInfo>() && detail.UnpackTo(&info) && info.domain() == kErrorDomain) {
      error.reason = info.reason();
      for (const auto& [name, value] : info.metadata()) {
        error.metadata[name] = value;
      }
    } else if (detail.Is<google::rpc::BadRequest>() && detail.UnpackTo(&bad) &&
               bad.field_violations_size() > 0) {
      error.field = bad.field_violations(0).field();
    } else if (detail.Is<google::rpc::PreconditionFailure>() && detail.UnpackTo(&failure) &&
               failure.violations_size() > 0) {
      error.field = failure.violations(0).subject();
    } else if (detail.Is<google::rpc::RetryInfo>() && detail.UnpackTo(&retry)) {
      error.retry_after_ms = retry.retry_delay().seconds() * 1000 + retry.retry_delay().nanos() / 1'000'000;
    }
  }
  return error.reason.empty() ? plain : MakeError(error);
}

}  // namespace kvasir
