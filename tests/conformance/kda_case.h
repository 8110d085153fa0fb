// The one table of recurrent cases that every backend runs: heads, dims, kernels, rows, gates, state copies,
// parts and both rollbacks.
#ifndef KVASIR_TESTS_CONFORMANCE_KDA_CASE_H_
#define KVASIR_TESTS_CONFORMANCE_KDA_CASE_H_

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "common/geometry/dtype.h"
#include "common/plan/plan.h"

namespace kvasir::testing {

struct KdaCase {
  std::int64_t heads = 2;
  std::int64_t dim = 16;
  std::int64_t kernel = 4;
  std::int64_t draft_tokens = 3;  // N; 0: the state is updated in place
  StateRollback rollback = StateRollback::kSnapshots;
  std::int64_t parts = 1;
  float lower_bound = 0;  // of the gate; 0: none
  DType dtype = DType::kF32;
  std::vector<std::int64_t> prompts = {5, 1, 9};  // of the sequences, prefilled in chunks of `chunk`
  std::int64_t chunk = 4;
  std::int64_t tokens = 40;  // of each sequence in the end

  [[nodiscard]] std::int64_t width() const { return heads * dim; }
  [[nodiscard]] std::int64_t history() const { return kernel - 1 + draft_tokens; }
  [[nodiscard]] bool replays() const { return draft_tokens > 0 && rollback == StateRollback::kReplay; }
  [[nodiscard]] std::int64_t copies() const {
    return draft_tokens > 0 && rollback == StateRollback::kSnapshots ? draft_tokens + 1 : 1;
  }
};
void PrintTo(const KdaCase& c, std::ostream* out);

[[nodiscard]] std::vector<KdaCase> AllKdaCases();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_KDA_CASE_H_
