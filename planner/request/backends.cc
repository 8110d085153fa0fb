#include "planner/request/backends.h"

#include <algorithm>

#include "common/base/limits.h"

namespace kvasir {
namespace {

// What a backend does with passes of several query rows per sequence.
struct MultiToken {
  bool causal = false;
  bool non_causal = false;
  bool causal_dcp = false;
  bool non_causal_dcp = false;
};

struct Row {
  BackendFacts facts;
  std::int64_t page_multiple = 0;  // the kernels take any multiple of it; 0: only the sizes listed
};

Row Attention(std::string_view name, std::vector<LayoutKind> layouts, std::vector<DType> dtypes,
              std::vector<std::int64_t> pages, MultiToken passes) {
  Row row;
  row.facts.name = name;
  row.facts.layouts = std::move(layouts);
  row.facts.cache_dtypes = std::move(dtypes);
  row.facts.page_tokens = std::move(pages);
  row.facts.causal_multi_token = passes.causal;
  row.facts.non_causal_multi_token = passes.non_causal;
  row.facts.causal_multi_token_dcp = passes.causal_dcp;
  row.facts.non_causal_multi_token_dcp = passes.non_causal_dcp;
  row.facts.lse = true;
  row.facts.graphs = true;
  return row;
}

Row AnyMultiple(Row row, std::int64_t multiple) {
  row.page_multiple = multiple;
  return row;
}

// By name.
std::vector<Row> Rows() {
  const std::vector<LayoutKind> latent = {LayoutKind::kLatent};
  const std::vector<LayoutKind> key_value = {LayoutKind::kKeyValue};
  const std::vector<LayoutKind> both = {LayoutKind::kKeyValue, LayoutKind::kLatent};
  const std::vector<LayoutKind> all = {LayoutKind::kKeyValue, LayoutKind::kLatent, LayoutKind::kState};
  const std::vector<DType> bf16 = {DType::kBf16};
  const std::vector<DType> bf16_fp8 = {DType::kBf16, DType::kFp8E4M3};
  const std::vector<std::int64_t> by_16 = {16, 32, 64, 128};
  std::vector<Row> rows;
  rows.push_back(Attention("cutlass_mla", latent, bf16_fp8, {128}, {}));
  rows.push_back(Attention("fla", {LayoutKind::kState}, {}, {}, {.causal = true, .causal_dcp = true}));
  rows.push_back(
      AnyMultiple(Attention("flashattn", key_value, bf16_fp8, by_16, {true, true, true, true}), 16));
  rows.push_back(AnyMultiple(Attention("flashattn_mla", latent, bf16, by_16, {true, true, true, true}), 16));
  rows.push_back(
      Attention("flashinfer_cutedsl", latent, bf16_fp8, {32, 64, 128}, {.causal = true, .causal_dcp = true}));
  rows.push_back(Attention("flashinfer_trtllm", both, bf16_fp8, {32, 64}, {.causal = true}));
  rows.push_back(Attention("flashmla", latent, bf16_fp8, {64}, {.causal = true, .causal_dcp = true}));
  rows.push_back(AnyMultiple(
      Attention("reference", all, {DType::kBf16, DType::kF32}, by_16, {true, true, true, true}), 16));
  rows.push_back(Attention("tokenspeed", latent, {DType::kFp8E4M3}, {32, 64}, {true, true, true, true}));
  rows.push_back(AnyMultiple(Attention("triton", both, bf16_fp8, by_16, {true, true, true, true}), 16));
  return rows;
}

std::vector<std::int64_t> Narrowed(const Row& row, std::int64_t block) {
  if (row.facts.page_tokens.empty()) return {};
  const auto& listed = row.facts.page_tokens;
  const bool takes =
      std::find(listed.begin(), listed.end(), block) != listed.end() ||
      (row.page_multiple > 0 && block > 0 && block <= kBlockTokensMax && block % row.page_multiple == 0);
  return takes ? std::vector<std::int64_t>{block} : std::vector<std::int64_t>{};
}

}  // namespace

std::vector<BackendFacts> BackendTable() { return BackendsWithBlock(0); }

std::vector<BackendFacts> BackendsWithBlock(std::int64_t block_tokens) {
  std::vector<BackendFacts> table;
  for (Row& row : Rows()) {
    if (block_tokens != 0) row.facts.page_tokens = Narrowed(row, block_tokens);
    table.push_back(std::move(row.facts));
  }
  return table;
}

bool KeepsState(std::string_view backend) {
  for (const Row& row : Rows()) {
    const auto& layouts = row.facts.layouts;
    if (row.facts.name == backend)
      return std::find(layouts.begin(), layouts.end(), LayoutKind::kState) != layouts.end();
  }
  return false;
}

}  // namespace kvasir
