#include "planner/request/engine_backend_choice.h"

#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

namespace kvasir {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::int64_t kFewHeads = 16;  // of a rank; FlashMLA's sparse kernels pad them

bool IsQuantised(const EngineLaunch& launch, bool draft) {
  std::string said = launch.options.kv_cache_dtype.value_or("auto");
  if (draft) said = launch.options.spec_kv_cache_dtype.value_or(said);
  if (said == "auto") return launch.target.quantisation.cache_dtype == DType::kFp8E4M3;
  return said.substr(0, 3) == "fp8";
}

std::int64_t HeadsOfRank(const EngineLaunch& launch) {
  for (const ModelLayer& layer : launch.target.layers) {
    if (const auto* mla = std::get_if<MlaShape>(&layer.mixer))
      return mla->heads / launch.options.tensor_parallel.value_or(1);
  }
  return 0;
}

Names LatentNames(const EngineLaunch& launch, bool quantised) {
  const std::int32_t major = launch.device->sm / 10;
  if (major == 0) return {"TRITON_MLA", "ROCM_AITER_MLA_SPARSE"};
  if (major == 12) return {"TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM120"};
  if (major != 10) return {"FLASH_ATTN_MLA", "FLASHMLA", "FLASHINFER_MLA", "TRITON_MLA", "FLASHMLA_SPARSE"};
  Names names = {"FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA",
                 "FLASH_ATTN_MLA", "FLASHMLA",       "TRITON_MLA"};
  const bool flashinfer = quantised || HeadsOfRank(launch) <= kFewHeads;
  names.emplace_back(flashinfer ? "FLASHINFER_MLA_SPARSE" : "FLASHMLA_SPARSE");
  names.emplace_back(flashinfer ? "FLASHMLA_SPARSE" : "FLASHINFER_MLA_SPARSE");
  return names;
}

Names KeyValueNames(const EngineLaunch& launch, bool non_causal) {
  const std::int32_t major = launch.device->sm / 10;
  if (major == 0) return {"ROCM_ATTN", "TRITON_ATTN"};
  if (major == 10 && !non_causal) return {"FLASHINFER", "FLASH_ATTN", "TRITON_ATTN"};
  return {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"};
}

std::string FirstOf(const EngineLaunch& launch, const ModelDescription& model, bool non_causal) {
  if (!launch.device.has_value()) return "";
  const BackendLayers layers = BackendLayersOf(model);
  const bool latent = layers.kind == LayoutKind::kLatent;
  const bool quantised = IsQuantised(launch, non_causal);
  const bool sharded = launch.options.decode_context_parallel.value_or(1) > 1;
  const BackendTest takes = [&](const BackendRow& row) {
    const auto& dtypes = row.facts.cache_dtypes;
    const bool fp8 = std::find(dtypes.begin(), dtypes.end(), DType::kFp8E4M3) != dtypes.end();
    const bool half = std::find(dtypes.begin(), dtypes.end(), DType::kBf16) != dtypes.end();
    if (!Reads(row, layers) || !RunsOn(row, launch.device)) return false;
    // Packed rows of sparse layers are no dtype of the table.
    if (!layers.sparse && !(quantised ? fp8 : half)) return false;
    if (launch.options.block_size.has_value() && *launch.options.block_size % SmallestPage(row) != 0)
      return false;
    return !non_causal ||
           (row.facts.non_causal_multi_token && (!latent || !sharded || row.engine_non_causal_dcp));
  };
  for (const std::string_view name :
       latent ? LatentNames(launch, quantised) : KeyValueNames(launch, non_causal)) {
    const std::vector<const BackendRow*> rows = RowsOfEngine(name);
    if (std::any_of(rows.begin(), rows.end(), [&](const BackendRow* row) { return takes(*row); }))
      return std::string(name);
  }
  return "";
}

}  // namespace

bool RunsOn(const BackendRow& row, const std::optional<GpuRow>& device) {
  if (!device.has_value()) return true;
  if (device->sm == 0) return row.hardware.cdna;
  return row.hardware.sm_least <= device->sm && device->sm <= row.hardware.sm_most;
}

BackendLayers BackendLayersOf(const ModelDescription& model) {
  return {HasLatent(model) ? LayoutKind::kLatent : LayoutKind::kKeyValue, IsSparse(model)};
}

bool Reads(const BackendRow& row, const BackendLayers& layers) {
  // Backends of sparse attention read what an indexer picked, and nothing else.
  const bool picks = row.engine.find("SPARSE") != std::string_view::npos;
  const auto& layouts = row.facts.layouts;
  return picks == layers.sparse && std::find(layouts.begin(), layouts.end(), layers.kind) != layouts.end();
}

std::string TargetBackendUnsaid(const EngineLaunch& launch) {
  return FirstOf(launch, launch.target, /*non_causal=*/false);
}

std::string NonCausalDraftBackendUnsaid(const EngineLaunch& launch) {
  return launch.draft.has_value() ? FirstOf(launch, *launch.draft, /*non_causal=*/true) : "";
}

}  // namespace kvasir
