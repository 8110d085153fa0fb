// The one table of attention cases that every backend runs: page and split edges, zero lengths, more rows
// than tokens, shapes that no tile divides, and every context-parallel world up to 8.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_CASE_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_CASE_H_

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "common/geometry/dtype.h"

namespace kvasir::testing {

struct DecodeCase {
  std::int64_t batch = 3;       // request b has max(0, length - b * (query_rows + 1)) tokens
  std::int64_t length = 64;     // tokens of the first request, the query rows included
  std::int64_t query_rows = 1;  // rows beyond a request's length are padding
  std::int64_t heads = 8;       // of all ranks
  bool causal = true;
  std::int64_t dcp = 1;
  std::int64_t interleave = 1;
  std::int64_t latent = 40;
  std::int64_t rope = 8;
  std::int64_t block_tokens = 16;
  std::int64_t split_tokens = 64;
  DType dtype = DType::kBf16;
};
void PrintTo(const DecodeCase& c, std::ostream* out);

// Every family of cases, in one list.
[[nodiscard]] std::vector<DecodeCase> AllDecodeCases();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_DECODE_CASE_H_
