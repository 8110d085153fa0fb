// Any request of the wire, as bytes or as text: every question about plans is answered or refused with a
// reason, and equal requests get equal answers.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/typed_error.h"
#include "kvasir/planner/v1/planner_service.pb.h"
#include "planner/service/answers.h"

namespace {

using kvasir::planner::v1::CreatePlanRequest;

class Silence final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

bool Read(std::string_view bytes, CreatePlanRequest& request) {
  const std::string text(bytes);
  if (request.ParseFromString(text)) return true;
  Silence silence;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silence);
  parser.SetRecursionLimit(32);
  return parser.ParseFromString(text, &request);
}

// The answer's bytes, or its error.
template <class Response>
std::string Told(const absl::StatusOr<Response>& response) {
  if (response.ok()) return response->SerializeAsString();
  // Not ToString: Abseil shuffles payloads there on purpose.
  const kvasir::TypedError error = kvasir::ErrorOf(response.status());
  KVASIR_CHECK(!error.reason.empty());
  std::string told = error.reason + "\n" + error.field + "\n" + error.message;
  for (const auto& [name, value] : error.metadata) absl::StrAppend(&told, "\n", name, "=", value);
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  CreatePlanRequest request;
  if (!Read({reinterpret_cast<const char*>(data), size}, request)) return 0;
  const std::string told = Told(kvasir::AnswerCreatePlan(request));
  KVASIR_CHECK(told == Told(kvasir::AnswerCreatePlan(request)));
  kvasir::planner::v1::ValidateSpecsRequest validate;
  *validate.mutable_target() = request.target();
  *validate.mutable_draft() = request.draft();
  *validate.mutable_options() = request.options();
  (void)Told(kvasir::AnswerValidateSpecs(validate));
  return 0;
}
