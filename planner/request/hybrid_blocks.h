// How the engine brings recurrent states and attention rows under one page size: the attention block grows
// until its page holds a state, and the state is padded to that page (vLLM platforms/interface.py,
// _align_hybrid_block_size).
#ifndef KVASIR_PLANNER_REQUEST_HYBRID_BLOCKS_H_
#define KVASIR_PLANNER_REQUEST_HYBRID_BLOCKS_H_

#include <cstdint>
#include <optional>

#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

struct HybridQuestion {
  std::int64_t attention_bytes = 0;  // of one token in one layer
  std::int64_t state_bytes = 0;      // of one layer's state, unpadded
  std::int64_t kernel_block = 16;    // the smallest that the attention kernels take; tokens
  std::int64_t block = 16;           // asked for, or preferred by the backend; tokens
  std::int64_t unit_least = 1;       // tokens; latent attention's kernels want multiples of 64 or 128
  vllm::MambaCacheMode mode = vllm::MambaCacheMode::kNone;
  std::int64_t chunk = 0;  // kAll: tokens of the recurrence's chunk
  std::int64_t max_model_len = 0;
};

struct HybridBlocks {
  std::int64_t attention_block = 0;              // tokens
  std::int64_t state_block = 0;                  // tokens: the engine's mamba_block_size
  std::optional<std::int64_t> page_padded = {};  // bytes; nullopt: the pages are equal as they are
  friend bool operator==(const HybridBlocks&, const HybridBlocks&) = default;
};

// Requires positive sizes below 2^50. nullopt where a product leaves 64 bits.
[[nodiscard]] std::optional<HybridBlocks> AlignHybridBlocks(const HybridQuestion& question);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_HYBRID_BLOCKS_H_
