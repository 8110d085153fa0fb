// Canonical text of a model description, both ways, and its digest.
#ifndef KVASIR_COMMON_MODELS_MODEL_TEXT_H_
#define KVASIR_COMMON_MODELS_MODEL_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

[[nodiscard]] std::string ModelToText(const ModelDescription& model);

// InvalidArgument naming the line and what was expected; limits as in common/base/limits.h are enforced, so a
// worker may parse what a peer sent. ModelToText(ModelFromText(t)) == t for every accepted t.
[[nodiscard]] absl::StatusOr<ModelDescription> ModelFromText(std::string_view text);

// SHA-256 of the canonical text, 64 hex digits; the same number a plan's ModelRef carries.
[[nodiscard]] std::string ModelDigest(const ModelDescription& model);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MODEL_TEXT_H_
