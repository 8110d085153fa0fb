// The passes of a chain draft (DraftShape::IsChain): DeepSeek-V3's module of multi-token prediction. With h
// the target's state of a position behind its last norm, and t the token after it,
//   x = pair_proj [token_norm(embedding(t)) ; state_norm(h)]
// goes through one layer as of a target, whose cache keeps a row for each position; norm and head then
// predict the token after t. To draft on, the layer's own output stands for h. Source: DeepSeek-V3 report,
// section 2.2; vLLM's models/deepseek_mtp.py for the order of the pair and for what h is.
#ifndef KVASIR_WORKER_ENGINE_CHAIN_PASS_H_
#define KVASIR_WORKER_ENGINE_CHAIN_PASS_H_

#include "worker/engine/layer_pass.h"

namespace kvasir {

// The cache rows of committed tokens, each with the state of the token before it; the state of a sequence's
// last one is then carried to the next pass.
[[nodiscard]] LaunchList WriteChainContextPass(const PassContext& context);
// Row k of all requests after row k - 1 of all.
[[nodiscard]] LaunchList WriteChainBlockPass(const PassContext& context);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHAIN_PASS_H_
