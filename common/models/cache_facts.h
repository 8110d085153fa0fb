// What one cache of one layer costs on one rank: rows and their bytes, or states and their shapes. For people
// and for tests; planners derive their own numbers.
#ifndef KVASIR_COMMON_MODELS_CACHE_FACTS_H_
#define KVASIR_COMMON_MODELS_CACHE_FACTS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/geometry/dtype.h"
#include "common/models/mixer_shapes.h"

namespace kvasir {

// One tensor of a recurrent state, in an engine's order of dimensions.
struct StateFact {
  std::string_view name;  // "conv", "recurrent"
  std::vector<std::int64_t> shape;
  DType dtype = DType::kBf16;
  [[nodiscard]] std::int64_t bytes() const;
  friend bool operator==(const StateFact&, const StateFact&) = default;
};

struct CacheFacts {
  std::int64_t row_bytes = 0;       // of one row; 0: no rows
  std::int64_t tokens_per_row = 1;  // above 1 in a compressed cache
  std::int64_t tokens_kept =
      0;  // rows of so many tokens at most (a window, a chunk, an encoder's input); 0: of all
  std::vector<StateFact> states;  // per sequence
  [[nodiscard]] bool grows() const { return row_bytes > 0 && tokens_kept == 0; }
  // Of what does not grow with the sequence once it is longer than `tokens_kept`.
  [[nodiscard]] std::int64_t fixed_bytes() const;
  friend bool operator==(const CacheFacts&, const CacheFacts&) = default;
};

// `dtype` is the model's, of rows and convolutions. Latent rows, indexer keys and compressor states stand
// whole on every rank; key-value heads are at least 1 a rank. InvalidArgument naming the heads that `tp`
// ranks cannot share evenly. A layer that reads another's cache, or keeps nothing, gives no rows and no
// states.
[[nodiscard]] absl::StatusOr<CacheFacts> CacheFactsOf(const MixerShape& shape, DType dtype, std::int64_t tp);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_CACHE_FACTS_H_
