#include "tests/conformance/kda_case.h"

#include <ostream>

#include "absl/strings/str_format.h"

namespace kvasir::testing {

void PrintTo(const KdaCase& c, std::ostream* out) {
  *out << absl::StrFormat("h%d_d%d_k%d_n%d_%s_parts%d_bound%d_%s_c%d", c.heads, c.dim, c.kernel,
                          c.draft_tokens, StateRollbackName(c.rollback), c.parts,
                          static_cast<int>(c.lower_bound), DTypeName(c.dtype), c.chunk);
}

std::vector<KdaCase> AllKdaCases() {
  std::vector<KdaCase> cases;
  for (const StateRollback rollback : {StateRollback::kSnapshots, StateRollback::kReplay}) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      for (const std::int64_t n : {1, 2, 3, 7}) {
        cases.push_back({.draft_tokens = n, .rollback = rollback, .dtype = dtype});
      }
      cases.push_back({.rollback = rollback, .parts = 3, .lower_bound = -5, .dtype = dtype});
    }
    // Shapes that no lane count divides, the shortest kernel, one head, one token a chunk.
    cases.push_back({.heads = 3, .dim = 5, .kernel = 2, .rollback = rollback, .chunk = 1});
    cases.push_back({.heads = 1, .dim = 33, .kernel = 7, .rollback = rollback, .parts = 2, .chunk = 16});
    cases.push_back({.heads = 1, .dim = 128, .draft_tokens = 5, .rollback = rollback, .tokens = 24});
    // The published heads, with the gates of Kimi-Linear and of Kimi-K3 (12 heads: a rank of K3's at TP 8).
    for (const float lower_bound : {0.0F, -5.0F}) {
      for (const DType dtype : {DType::kF32, DType::kBf16}) {
        cases.push_back({.heads = 12,
                         .dim = 128,
                         .draft_tokens = 7,
                         .rollback = rollback,
                         .lower_bound = lower_bound,
                         .dtype = dtype,
                         .tokens = 24});
      }
    }
    // So long that errors of a state would add up.
    cases.push_back({.heads = 2,
                     .dim = 128,
                     .draft_tokens = 7,
                     .rollback = rollback,
                     .prompts = {5, 130, 64},
                     .chunk = 64,
                     .tokens = 300});
  }
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    cases.push_back({.draft_tokens = 0, .lower_bound = -5, .dtype = dtype});
    cases.push_back({.draft_tokens = 0, .parts = 2, .dtype = dtype, .chunk = 8});
    cases.push_back({.heads = 32, .dim = 128, .draft_tokens = 0, .dtype = dtype, .tokens = 20});
  }
  return cases;
}

}  // namespace kvasir::testing
