// Early return on a non-OK absl::Status or StatusOr.
#ifndef KVASIR_COMMON_BASE_STATUS_MACROS_H_
#define KVASIR_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#define KVASIR_CONCAT_INNER(a, b) a##b
#define KVASIR_CONCAT(a, b) KVASIR_CONCAT_INNER(a, b)

#define KVASIR_RETURN_IF_ERROR(expr)                        \
  do {                                                      \
    if (auto kvasir_status = (expr); !kvasir_status.ok()) { \
      return kvasir_status;                                 \
    }                                                       \
  } while (false)

#define KVASIR_ASSIGN_OR_RETURN(lhs, expr) \
  KVASIR_ASSIGN_OR_RETURN_IMPL(KVASIR_CONCAT(kvasir_result_, __COUNTER__), lhs, expr)
#define KVASIR_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) {                                   \
    return std::move(tmp).status();                  \
  }                                                  \
  lhs = *std::move(tmp)

#endif  // KVASIR_COMMON_BASE_STATUS_MACROS_H_
