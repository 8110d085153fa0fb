// Attention at the published geometry: latent 512 + 64, pages of 64 tokens, and the head counts, worlds,
// query rows and lengths that models are served with. The whole product is
//
//   world (DCP x interleave) {1, 2, 4, 8} x {1, 16, 64} (one without DCP), query rows {1, 4, 7, 8},
//   causal and not, heads {12, 16, 64, 96, 128}, lengths {0, 1, q, 63, 64, 65, 127, 130, 259, 4099}, bf16 and
//   f32
//
// less what would only repeat: 12 heads are not dealt to 8 ranks, and 4099 tokens meet every number of query
// rows with 16 heads, and with every other number of heads one number of query rows.
#ifndef KVASIR_TESTS_CONFORMANCE_PUBLISHED_CASE_H_
#define KVASIR_TESTS_CONFORMANCE_PUBLISHED_CASE_H_

#include <cstdint>
#include <vector>

#include "tests/conformance/decode_case.h"

namespace kvasir::testing {

// The geometry, without DCP; the rest are defaults.
[[nodiscard]] DecodeCase PublishedShape();

// The product's cases without DCP, and one of them in every world that has a place for its heads.
[[nodiscard]] std::vector<DecodeCase> PublishedShapes();
[[nodiscard]] std::vector<DecodeCase> InEveryWorld(const DecodeCase& shape);

// Of the product so few cases that any two values of two of its dimensions still meet in one, as far as they
// do in the product; 4099 tokens only with 16 heads and 1 or 4 query rows.
[[nodiscard]] std::vector<DecodeCase> PublishedPairs();

// All lengths but the longest in one batch, without DCP.
[[nodiscard]] std::vector<DecodeCase> PublishedMixes();

// Splits of one token, of a page, of several, and longer than the context; where a row sees a page's edge the
// last split has keys for some rows only, and where a rank has no token it has none.
[[nodiscard]] std::vector<DecodeCase> PublishedSplits();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_PUBLISHED_CASE_H_
