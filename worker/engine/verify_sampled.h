// Verification of a drafted block where tokens are sampled: what is emitted has exactly the distribution that
// sampling from the target alone would have given it, whatever the draft. A good draft only makes it faster.
//
// That needs one thing: `draft[i]` is the distribution that drafted[i] was really drawn from, independently
// of the draws used here. A token picked without chance has all probability on it (OneHot); that may be said
// of a drawn one too, for given the token nothing is left to chance, but then fewer are accepted.
//
// `standard` (Leviathan, Kalman and Matias, arXiv 2211.17192): drafted token i passes with probability
// min(1, p(x) / q(x)), p the target's and q the draft's distribution in its place; at the first that does not
// pass, the emitted token is drawn from max(p - q, 0), normalised; if all pass, one more is drawn from the
// target's last distribution.
//
// `block` (Sun et al., "Block Verification Accelerates Speculative Decoding", arXiv 2403.10444): a ratio
// above 1 earlier in the block may pay for one below 1 later. M_0 = 1, M_i = min(M_(i-1) p(x_i) / q(x_i), 1);
// with S_i = sum of max(M_i p - q, 0) over the tokens in place i + 1, the prefix of length i passes with
// probability S_i / (S_i + 1 - M_i), the whole block with M_n; the longest that passes is accepted, and the
// emitted token is drawn from max(M_a p - q, 0), normalised. Accepts at least as many as `standard` on
// average.
//
// Temperature 0 is the limit of both: with one-hot distributions they accept the longest equal prefix and
// emit the target's own token, as verify_greedy.h does.
#ifndef KVASIR_WORKER_ENGINE_VERIFY_SAMPLED_H_
#define KVASIR_WORKER_ENGINE_VERIFY_SAMPLED_H_

#include <cstdint>
#include <span>

#include "worker/engine/sampling_parameters.h"
#include "worker/engine/token_distribution.h"
#include "worker/engine/verify_greedy.h"

namespace kvasir {

struct DraftedBlock {
  std::span<const std::int32_t> drafted;      // [n], n >= 0
  std::span<const TokenDistribution> draft;   // [n]: of drafted[i], given the anchor and drafted[0 .. i-1]
  std::span<const TokenDistribution> target;  // [n + 1]: of the token after the anchor and drafted[0 .. i-1]
};

// Where the draws come from: drafted token i is judged by (seed, anchor, kAccept, i), the token emitted at
// position p drawn by (seed, p, kToken), as plain decoding would.
struct BlockDraws {
  std::uint64_t seed = 0;
  std::int64_t anchor = 0;  // position T of the anchor; drafted[i] stands at T + 1 + i
};

// Requires the sizes above.
[[nodiscard]] DraftVerdict VerifySampled(VerifyMethod method, const DraftedBlock& block,
                                         const BlockDraws& draws);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_VERIFY_SAMPLED_H_
