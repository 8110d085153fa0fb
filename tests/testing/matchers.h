// Matchers for absl::Status and StatusOr (this Abseil has none).
#ifndef KVASIR_TESTS_TESTING_MATCHERS_H_
#define KVASIR_TESTS_TESTING_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// The code equals `code` and the message contains `part`.
MATCHER_P2(StatusIs, code, part, "is a status with the code and message part") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(part) != std::string::npos;
}

}  // namespace kvasir::testing

#define KVASIR_ASSERT_OK(expr) ASSERT_THAT((expr), ::kvasir::testing::IsOk())
#define KVASIR_EXPECT_OK(expr) EXPECT_THAT((expr), ::kvasir::testing::IsOk())

#endif  // KVASIR_TESTS_TESTING_MATCHERS_H_
