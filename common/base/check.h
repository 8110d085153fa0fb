// KVASIR_CHECK: for our own bugs only; never compiled out, in any build. Input, files and peers get an
// absl::Status.
#ifndef KVASIR_COMMON_BASE_CHECK_H_
#define KVASIR_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace kvasir::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: internal error: %s\n", file, line, what);
  std::abort();
}

}  // namespace kvasir::internal

#define KVASIR_CHECK(condition) \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::kvasir::internal::CheckFailed(__FILE__, __LINE__, "check failed: " #condition))

#endif  // KVASIR_COMMON_BASE_CHECK_H_
