#include "common/checkpoint/checkpoint_error.h"

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/models/config_error.h"

namespace kvasir {
namespace {

constexpr std::size_t kNameShown = 256;

absl::StatusCode CodeOf(std::string_view reason) {
  if (reason == reason::kCheckpointNotFound) return absl::StatusCode::kNotFound;
  if (reason == reason::kCheckpointUnsupported) return absl::StatusCode::kFailedPrecondition;
  if (reason == reason::kCheckpointUnreadable) return absl::StatusCode::kDataLoss;
  return absl::StatusCode::kInvalidArgument;
}

}  // namespace

absl::Status ToStatus(const CheckpointError& error) {
  TypedError typed{.code = CodeOf(error.reason), .reason = std::string(error.reason)};
  const auto add = [&typed](std::string_view name, std::string_view text, std::string_view before) {
    if (text.empty()) return;
    const std::string shown = ShownText(text, kNameShown);
    typed.metadata[std::string(name)] = shown;
    typed.message += absl::StrFormat("%s%s: ", before, shown);
  };
  add("file", error.file, "");
  add("tensor", error.tensor, "tensor ");
  add("value", error.value, "");
  typed.message += ShownText(error.fix, 4096);
  return MakeError(typed);
}

}  // namespace kvasir
