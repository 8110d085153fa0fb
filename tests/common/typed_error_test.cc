#include "common/base/typed_error.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

TEST(TypedError, SurvivesTheTripThroughAStatus) {
  const TypedError error{.code = absl::StatusCode::kAborted,
                         .reason = "STALE_EPOCH",
                         .message = "epoch 3 is below 4",
                         .field = "epoch",
                         .metadata = {{"epoch", "3"}, {"max_epoch", "4"}},
                         .retry_after_ms = 250};
  const TypedError back = ErrorOf(MakeError(error));
  EXPECT_EQ(back.code, error.code);
  EXPECT_EQ(back.reason, error.reason);
  EXPECT_EQ(back.message, error.message);
  EXPECT_EQ(back.field, error.field);
  EXPECT_EQ(back.metadata, error.metadata);
  EXPECT_EQ(back.retry_after_ms, error.retry_after_ms);
}

TEST(TypedError, AStatusMadeElsewhereHasItsCodeAsReason) {
  EXPECT_EQ(ReasonOf(absl::NotFoundError("no")), "NOT_FOUND");
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
}

TEST(TypedError, FieldsNest) {
  const absl::Status inner = FieldError("VALUE_OUT_OF_RANGE", "heads", "heads is 0");
  EXPECT_EQ(ErrorOf(WithinField("layers[3]", inner)).field, "layers[3].heads");
  EXPECT_EQ(ErrorOf(WithinField("layers", WithinField("[3]", inner))).field, "layers[3].heads");
  EXPECT_EQ(ErrorOf(WithinField("layers", absl::InvalidArgumentError("x"))).field, "layers");
  KVASIR_EXPECT_OK(WithinField("layers", absl::OkStatus()));
}

TEST(TypedError, AReasonIsAddedOnlyWhereNoneIs) {
  const absl::Status plain =
      WithReason("PLAN_TEXT_INVALID", "plan_text", absl::InvalidArgumentError("line 3"));
  EXPECT_EQ(ReasonOf(plain), "PLAN_TEXT_INVALID");
  EXPECT_EQ(ErrorOf(plain).field, "plan_text");
  EXPECT_EQ(ReasonOf(WithReason("OTHER", "x", plain)), "PLAN_TEXT_INVALID");
}

}  // namespace
}  // namespace kvasir
