#include "planner/request/hybrid_blocks.h"

#include <algorithm>

#include "common/base/checked_math.h"

namespace kvasir {

std::optional<HybridBlocks> AlignHybridBlocks(const HybridQuestion& question) {
  const bool all = question.mode == vllm::MambaCacheMode::kAll;
  std::optional<std::int64_t> unit = std::max({question.kernel_block, question.block, question.unit_least});
  if (all) unit = CheckedLcm(std::max<std::int64_t>(question.chunk, 1), *unit);
  const auto unit_bytes = unit.has_value() ? CheckedMul(*unit, question.attention_bytes) : std::nullopt;
  if (!unit_bytes.has_value()) return std::nullopt;
  const auto least = CheckedMul(*unit, CeilDiv(question.state_bytes, *unit_bytes));
  if (!least.has_value()) return std::nullopt;

  HybridBlocks blocks;
  blocks.attention_block = std::max(question.block, *least);
  switch (question.mode) {
    case vllm::MambaCacheMode::kNone:
      blocks.state_block = question.max_model_len;
      break;
    case vllm::MambaCacheMode::kAlign:
      blocks.state_block = blocks.attention_block;
      break;
    case vllm::MambaCacheMode::kAll:
      blocks.state_block = *least;
      break;
  }
  const auto page = CheckedMul(blocks.attention_block, question.attention_bytes);
  if (!page.has_value()) return std::nullopt;
  if (*page != question.state_bytes) blocks.page_padded = page;
  return blocks;
}

}  // namespace kvasir
