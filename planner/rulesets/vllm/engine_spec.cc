#include "planner/rulesets/vllm/engine_spec.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"

namespace kvasir::vllm {
namespace {

EngineFailure InputFailure(EngineErrorKind kind, std::string message) {
  return {EngineStage::kInput, kind, std::move(message)};
}

// Fields that came after 2026-08 return to their defaults.
void ForgetLaterFields(EngineSpec& spec) {
  spec.dcp_sharded = IsAttentionKind(spec.kind);
  spec.block_stride_alignment.reset();
  spec.cache_role = CacheRole::kSparse;
  spec.is_index_group_leader = false;
  spec.storage_block_size.reset();
  spec.bounded_replay = false;
  spec.num_prefill_checkpoint_blocks = 0;
  spec.prefill_checkpoint_alignment.reset();
  spec.tp_replicated = false;
  if (!IsMlaKind(spec.kind) && spec.kind != SpecKind::kSlidingMla) spec.tokens_per_state = {};
}

EngineResult<std::int64_t> StateBytes(const EngineSpec& spec) {
  std::int64_t total = 0;
  const std::size_t states = std::min(spec.shapes.size(), spec.dtypes.size());  // the engine zips them
  for (std::size_t i = 0; i < states; ++i) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : spec.shapes[i]) {
      KVASIR_ASSIGN_OR_RETURN(elements, Exact(Wide{elements} * dim));
    }
    KVASIR_ASSIGN_OR_RETURN(total, Exact(total + Wide{elements} * ElementBytes(spec.dtypes[i])));
  }
  return total;
}

}  // namespace

EngineSpec MakeSpec(SpecKind kind) {
  EngineSpec spec;
  spec.kind = kind;
  spec.dcp_sharded = IsAttentionKind(kind);
  if (kind == SpecKind::kMamba) spec.mamba_type = "mamba2";
  return spec;
}

EngineResult<EngineSpec> Constructed(EngineVersion version, EngineSpec spec) {
  if (!ExistsIn(version, spec.kind)) {
    return InputFailure(EngineErrorKind::kNotInVersion,
                        absl::StrFormat("%s has no %s; plan with vllm-2026-11", EngineVersionName(version),
                                        SpecClassName(spec.kind)));
  }
  if (version == EngineVersion::k2026_08) {
    ForgetLaterFields(spec);
  } else {
    spec.indexes_kv_by_block_stride = false;
  }
  if (spec.block_stride_alignment.has_value() && *spec.block_stride_alignment <= 0) {
    return InputFailure(EngineErrorKind::kValueError,
                        absl::StrFormat("block_stride_alignment is %d; leave it out or make it positive",
                                        *spec.block_stride_alignment));
  }
  if (spec.kind == SpecKind::kSlidingMla && spec.model_version.has_value() &&
      *spec.model_version != "deepseek_v4") {
    return InputFailure(
        EngineErrorKind::kAssertionError,
        absl::StrFormat("model_version of a sliding_mla spec is \"%s\"; only \"deepseek_v4\" exists",
                        *spec.model_version));
  }
  if (spec.block_size > kBlockTokensLimit) {
    return InputFailure(EngineErrorKind::kTooLarge,
                        absl::StrFormat("block_size is %d tokens; at most %d are planned", spec.block_size,
                                        kBlockTokensLimit));
  }
  // An aligned page overrides whatever padding was given, so that a copy with another block size re-pads.
  if (spec.alignment.has_value() && *spec.alignment > 0) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, UnpaddedPageBytes(spec));
    if (bytes % *spec.alignment != 0) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t padded,
                              Exact(Wide{bytes / *spec.alignment + 1} * *spec.alignment));
      spec.page_size_padded = padded;
    }
  }
  return spec;
}

std::int64_t HeadSlots(const EngineSpec& spec) {
  if (spec.kind == SpecKind::kMamba) return 1;
  return spec.num_head_slots.value_or(spec.num_kv_heads);
}

std::int64_t StatesPerBlock(const EngineSpec& spec) {
  if (spec.kind == SpecKind::kMamba) return 1;
  const Wide states = Wide{spec.block_size} * spec.tokens_per_state.states / spec.tokens_per_state.tokens;
  return Saturated(states);
}

EngineResult<std::int64_t> StateContentBytes(const EngineSpec& spec) {
  if (spec.kind == SpecKind::kMamba) return StateBytes(spec);
  if (spec.state_content_bytes.has_value()) return *spec.state_content_bytes;
  return Exact((Wide{spec.head_size} + spec.head_size_v) * ElementBytes(spec.dtype));
}

EngineResult<std::int64_t> UnpaddedPageBytes(const EngineSpec& spec) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t content, StateContentBytes(spec));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t cells, Exact(Wide{HeadSlots(spec)} * StatesPerBlock(spec)));
  return Exact(Wide{cells} * content);
}

EngineResult<std::int64_t> PageBytes(const EngineSpec& spec) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, UnpaddedPageBytes(spec));
  if (!spec.page_size_padded.has_value()) return bytes;
  if (*spec.page_size_padded < bytes) {
    return PlanFailure(EngineErrorKind::kAssertionError,
                       absl::StrFormat("page_size_padded is %d, below the page of %d bytes; raise or drop it",
                                       *spec.page_size_padded, bytes));
  }
  return *spec.page_size_padded;
}

EngineResult<EngineSpec> WithBlockSize(EngineVersion version, EngineSpec spec, std::int64_t tokens) {
  spec.block_size = tokens;
  return Constructed(version, std::move(spec));
}

EngineResult<EngineSpec> WithPaddedPage(EngineVersion version, EngineSpec spec, std::int64_t bytes) {
  spec.page_size_padded = bytes;
  return Constructed(version, std::move(spec));
}

}  // namespace kvasir::vllm
