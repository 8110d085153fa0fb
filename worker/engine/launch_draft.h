// What stands at the end of a DSpark draft's block pass; part of launch.h, whose head says what holds for all
// operations. Formulas: DeepSpec's heads as in docs/kernels/cpu_mla_decode.md.
#ifndef KVASIR_WORKER_ENGINE_LAUNCH_DRAFT_H_
#define KVASIR_WORKER_ENGINE_LAUNCH_DRAFT_H_

#include <cstdint>

#include "common/models/model_description.h"

namespace kvasir {

// The drafted tokens of a block, with DSpark's Markov head: x_0 = anchors[b]; for k = 0 .. query_rows-1, with
// e = w1[x_k] and h = hidden[b, k]:
//   logits_k = base[b, k] + m * w2;  drafted[b, k] = x_{k+1}, chosen from logits_k, where
//     vanilla  m = e
//     gated    m = sigmoid(mix * [h; e] + mix_bias) e, element by element
//     rnn      [g; c; o] = mix * [s; e; h] + mix_bias, s = sigmoid(g) s + (1 - sigmoid(g)) tanh(c), from s =
//     0
//              at k = 0; m = tanh(o)
// Rank 0: no head, logits_k = base[b, k]; `logits` may then be `base`. Chosen is the largest (lowest id of
// equals) where temperatures[b] is 0, else the token that draws[b, k] picks from softmax(logits_k /
// temperatures[b]), as token_distribution.h says: verification must know the distribution exactly. A NaN, or
// a largest logit that is infinite, sets *fault to 1 and gives 0.
//
// With a confidence head, confidences[b, k] = sigmoid(confidence * [h; e] + bias) (without e where
// `confidence_markov` is not set): how likely the target is to accept drafted[b, k]. It looks at x_k and not
// at x_{k+1}, which is what makes it fit for choosing what to verify.
struct MarkovChainOp {
  const float* base;            // [requests, query_rows, vocab]
  const float* w1;              // [vocab, rank]
  const float* w2;              // [rank, vocab]
  const std::int32_t* anchors;  // [requests]
  float* logits;                // [requests, query_rows, vocab], the biased logits
  std::int32_t* drafted;        // [requests, query_rows]
  std::int32_t* fault;
  std::int64_t requests, query_rows, vocab, rank;
  const double* temperatures = nullptr;  // [requests]; null: all 0
  const double* draws = nullptr;         // [requests, query_rows], in [0, 1)

  MarkovHead head = MarkovHead::kVanilla;
  const float* mix = nullptr;       // gated: [rank, hidden + rank]; rnn: [3 * rank, 2 * rank + hidden]
  const float* mix_bias = nullptr;  // [rank] or [3 * rank]
  const float* hidden = nullptr;    // [requests, query_rows, hidden_dim], what base was projected from
  std::int64_t hidden_dim = 0;
  const float* confidence = nullptr;       // [hidden_dim + rank] or [hidden_dim]; null: no such head
  const float* confidence_bias = nullptr;  // [1]
  bool confidence_markov = true;
  float* confidences = nullptr;  // [requests, query_rows]
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_LAUNCH_DRAFT_H_
