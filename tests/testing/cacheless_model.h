// What the paged passes are compared with: target and DSpark draft computed without any paging.
//
// CachelessModel is written from the formulas alone, in double, in expanded form (keys and values per head,
// no absorption), with no code of the passes; it takes only the weights from the engine. Cache rows are
// rounded to the cache's element type where the engine stores them, so the two agree closely: about 1e-5 with
// f32 caches; with bf16 a value near a rounding boundary may fall to either side, which moves logits by about
// 1e-3.
//
// FromScratchDraft is for equality bit for bit: the engine's own operations over a fresh arena with
// contiguous blocks, everything recomputed from the tokens in one prefill.
#ifndef KVASIR_TESTS_TESTING_CACHELESS_MODEL_H_
#define KVASIR_TESTS_TESTING_CACHELESS_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/geometry/dtype.h"
#include "common/models/model_description.h"
#include "tests/testing/model_ranks.h"
#include "worker/engine/role_model.h"

namespace kvasir::testing {

// The sizes of a whole model on one rank, for weights without a plan.
[[nodiscard]] RoleModel WholeModel(Role role, const ModelDescription& model);

struct CachelessOptions {
  ModelDescription target;
  std::optional<ModelDescription> draft;
  std::int64_t seed = 1;
  DType cache_dtype = DType::kBf16;
};

struct CachelessTarget {
  std::vector<double> logits;  // [tokens, vocab]
  // [tokens, taps * hidden]; empty without a draft. Of a chain draft [tokens, hidden]: what the head reads.
  std::vector<double> taps;
};

struct CachelessDraft {
  std::vector<double> logits;         // [rows, vocab], with the Markov bias
  std::vector<std::int32_t> drafted;  // [rows]
  std::vector<double> confidences;    // [rows]; empty without a confidence head
};

class CachelessModel {
 public:
  static absl::StatusOr<std::unique_ptr<CachelessModel>> Create(const CachelessOptions& options);
  virtual ~CachelessModel() = default;
  // Tokens at positions 0, 1, 2, ...; causal.
  [[nodiscard]] virtual CachelessTarget Target(std::span<const std::int32_t> tokens) const = 0;
  // Block [anchor, mask, ...] of `rows` rows after a context whose taps are `taps` [context, taps * hidden].
  [[nodiscard]] virtual CachelessDraft Draft(std::span<const double> taps, std::int32_t anchor,
                                             std::int64_t rows) const = 0;
  // `rows` tokens one after the other, by a chain draft, after the committed `tokens`, whose states are
  // `taps`.
  [[nodiscard]] virtual CachelessDraft DraftChain(std::span<const std::int32_t> tokens,
                                                  std::span<const double> taps, std::int32_t anchor,
                                                  std::int64_t rows) const = 0;
};

// The draft block [anchor, mask, ...] of `rows` rows after the committed `tokens`: logits [rows, vocab] and
// drafted tokens. One tensor rank; `options` gives models, seed, cache type and block size.
absl::StatusOr<PassResult> FromScratchDraft(const ModelRanksOptions& options,
                                            std::span<const std::int32_t> tokens, std::int32_t anchor,
                                            std::int64_t rows);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_CACHELESS_MODEL_H_
