// The operations of a mixture of experts. launch.h has the rules that hold for all operations, and the list
// of them. Every rank routes every row: the router is not sharded, its input has the same bits on every rank,
// so all ranks choose the same experts without a word between them.
#ifndef KVASIR_WORKER_ENGINE_LAUNCH_EXPERTS_H_
#define KVASIR_WORKER_ENGINE_LAUNCH_EXPERTS_H_

#include <cstdint>

namespace kvasir {

// What a gated MLP makes of gate and up: silu(gate) * up; or with situ_beta > 0 SiTU (Kimi-K3),
// b * tanh(gate / b) * sigmoid(gate) * up, where up is limited to l * tanh(up / l) if situ_linear_beta > 0.
struct GatedActivation {
  float situ_beta = 0;
  float situ_linear_beta = 0;
};

enum class ScoreFunction : std::int8_t { kSoftmax, kSigmoid };

// Chooses experts for each row from its router's logits, as DeepSeek-V2 (arXiv 2405.04434, 2.1.2 and 2.1.3)
// and V3 (arXiv 2412.19437, 2.1.2) publish it:
//   s = softmax(logits) or sigmoid(logits);  c = s + bias, or s where there is no bias
//   a group of consecutive experts counts as the sum of its two largest c with a bias, else as its largest
//   ids = the `chosen` largest c within the `groups_kept` groups that count most, written in ascending order
//   weights = s of these experts; divided by (their sum + 1e-20) if `normalise`; times `scale`
// Of equals the lowest index wins. A NaN among the c sets *fault to 1; the row then gets experts 0, 1, 2, ...
// with weight 0.
struct RouteExpertsOp {
  const float* logits;  // [rows, experts]
  const float* bias;    // [experts], or null
  std::int32_t* ids;    // [rows, chosen]
  float* weights;       // [rows, chosen]
  std::int32_t* fault;
  ScoreFunction score;
  bool normalise;
  float scale;
  // groups divides experts, and chosen <= groups_kept * (experts / groups)
  std::int64_t rows, experts, chosen, groups, groups_kept;
};

// out[r] = sum over j of weights[r, j] * down[e] * act(gate[e] * in[r], up[e] * in[r]) with e = ids[r, j],
// added up in fp32 in the order of j, which is that of the experts. `width` is one expert's on this rank, so
// that out is this rank's part of the sum.
struct ExpertMlpOp {
  const float* in;          // [rows, dim]
  const std::int32_t* ids;  // [rows, chosen], ascending
  const float* weights;     // [rows, chosen]
  const float* gate;        // [experts, width, dim]
  const float* up;          // [experts, width, dim]
  const float* down;        // [experts, dim, width]
  float* inner;             // [rows, width]: scratch
  float* out;               // [rows, dim]
  std::int64_t rows, chosen, experts, dim, width;
  GatedActivation activation;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_LAUNCH_EXPERTS_H_
