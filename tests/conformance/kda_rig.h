// Runs sequences of a KdaCase through the recurrent operations of a backend, pass by pass: prefill in chunks,
// then decodes or verifies with rejected rows between them. The arena starts full of NaN, unused table
// entries hold absurd ids, and padded rows hold NaN. And the same recurrence in double, over each sequence at
// once.
#ifndef KVASIR_TESTS_CONFORMANCE_KDA_RIG_H_
#define KVASIR_TESTS_CONFORMANCE_KDA_RIG_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/kda_case.h"
#include "worker/engine/backend.h"

namespace kvasir::testing {

// Of one sequence; a row of `qkv` is [3, heads * dim], before the convolutions.
struct KdaSequence {
  std::vector<float> qkv;    // [tokens, 3, heads * dim]
  std::vector<float> decay;  // [tokens, heads * dim], before the gate
  std::vector<float> beta;   // [tokens, heads], before the sigmoid
};

struct KdaData {
  KdaCase c;
  std::vector<float> weight;   // [3, heads * dim, kernel]
  std::vector<float> a_log;    // [heads]
  std::vector<float> dt_bias;  // [heads, dim]
  std::vector<KdaSequence> sequences;
};
[[nodiscard]] KdaData MakeKdaData(const KdaCase& c, unsigned seed);

struct KdaRun {
  std::vector<std::vector<float>> out;  // [sequence][tokens, heads * dim]
  bool fault = false;
};

struct KdaOptions {
  // How the decoding passes go: rows of a pass and how many of them count follow from this; 0: plain decodes.
  unsigned pattern = 0;
  bool together = true;            // the sequences in one batch; else one after the other
  bool replay_graph = false;       // capture, destroy the list, replay
  std::int64_t poison_token = -1;  // before this token of sequence 0 runs, NaN in its state
};
// Internal where a row of padding is not 0 afterwards.
[[nodiscard]] absl::StatusOr<KdaRun> RunKda(Backend& backend, const KdaData& data,
                                            const KdaOptions& options = {});

[[nodiscard]] std::vector<std::vector<double>> ExactKda(const KdaData& data);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_KDA_RIG_H_
