#include "planner/rulesets/vllm/same_type.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace kvasir::vllm {
namespace {

EngineResult<bool> MambaAccepts(const SpecTable& table, std::int32_t first, std::int32_t other) {
  const EngineSpec& a = table[first];
  const EngineSpec& b = table[other];
  if (b.kind != SpecKind::kMamba || b.num_speculative_blocks != a.num_speculative_blocks) return false;
  if (table.version() == EngineVersion::k2026_08) return true;
  if (b.num_prefill_checkpoint_blocks != a.num_prefill_checkpoint_blocks ||
      b.prefill_checkpoint_alignment != a.prefill_checkpoint_alignment) {
    return false;
  }
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t b_page, table.Page(other));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t a_page, table.Page(first));
  return b_page == a_page && b.tp_replicated == a.tp_replicated;
}

}  // namespace

EngineResult<bool> AcceptsAsSameType(const SpecTable& table, std::int32_t first, std::int32_t other) {
  const EngineSpec& a = table[first];
  const EngineSpec& b = table[other];
  switch (a.kind) {
    case SpecKind::kFull:
    case SpecKind::kMla:
    case SpecKind::kHiddenState:
    case SpecKind::kRswa:
    case SpecKind::kSinkFull:
      return IsFullKind(b.kind);
    case SpecKind::kSliding:
      return IsSlidingKind(b.kind) && b.sliding_window == a.sliding_window;
    case SpecKind::kSlidingMla:  // 2026-08 has bounded_replay false throughout
      return b.kind == a.kind && b.sliding_window == a.sliding_window && b.bounded_replay == a.bounded_replay;
    case SpecKind::kChunkedLocal:
      return b.kind == a.kind && b.attention_chunk_size == a.attention_chunk_size;
    case SpecKind::kMamba:
      return MambaAccepts(table, first, other);
    case SpecKind::kCross:
    case SpecKind::kCircularBuffer:
    case SpecKind::kKpoolTail:
      return b.kind == a.kind;
    case SpecKind::kEncoderOnly:
      break;
  }
  return PlanFailure(EngineErrorKind::kAssertionError, "an encoder_only spec has no registered base");
}

EngineResult<bool> IsSameType(const SpecTable& table, const LayerSpecs& layers) {
  if (layers.empty()) {
    return PlanFailure(EngineErrorKind::kStopIteration, "no layers to ask for their type");
  }
  const std::vector<std::int32_t> specs = DistinctSpecs(layers);
  const EngineSpec& first = table[specs.front()];
  for (const std::int32_t id : specs) {
    if (table[id].block_size != first.block_size) return false;
  }
  // 2026-08 does not ask; there the flag differs only between attention and mamba, which never are one type.
  for (const std::int32_t id : specs) {
    if (table[id].dcp_sharded != first.dcp_sharded) return false;
  }
  for (const std::int32_t id : specs) {
    KVASIR_ASSIGN_OR_RETURN(const bool accepted, AcceptsAsSameType(table, specs.front(), id));
    if (!accepted) return false;
  }
  return true;
}

EngineResult<std::optional<UniformTypeSpecs>> WrapSameType(const SpecTable& table, const LayerSpecs& layers) {
  KVASIR_ASSIGN_OR_RETURN(const bool same, IsSameType(table, layers));
  if (!same) return std::optional<UniformTypeSpecs>();
  return std::optional<UniformTypeSpecs>({table[layers.front().spec].block_size, layers});
}

}  // namespace kvasir::vllm
