// The one table of attention cases that every backend runs: page and split edges, zero lengths, more rows
// than tokens, shapes that no tile divides, and every context-parallel world up to 8.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_CASE_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_CASE_H_

#include <algorithm>
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
  std::vector<std::int64_t> mix = {};  // the requests' lengths, where they are not as `length` says
  // Scores then grow with a token's position within its round of ranks, so that ranks weigh very differently
  // and no wrong combination passes by symmetry.
  bool skewed = false;

  [[nodiscard]] std::int64_t width() const { return latent + rope; }
  // Tokens of the longest request.
  [[nodiscard]] std::int64_t longest() const {
    return mix.empty() ? length : *std::max_element(mix.begin(), mix.end());
  }
};
// `c` with requests of these lengths.
[[nodiscard]] DecodeCase Mixed(DecodeCase c, std::vector<std::int64_t> lengths);
void PrintTo(const DecodeCase& c, std::ostream* out);

// Every family of cases, in one list.
[[nodiscard]] std::vector<DecodeCase> AllDecodeCases();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_DECODE_CASE_H_
