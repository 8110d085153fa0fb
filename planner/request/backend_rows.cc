#include "planner/request/backend_rows.h"

#include <utility>

namespace kvasir {
namespace {

constexpr std::string_view kVllm = "vLLM docs/design/attention_backends.md and v1/attention/backends";

constexpr std::int32_t kLater = 999;
constexpr BackendHardware kAnyCpu = {.words = "any CPU"};
constexpr BackendHardware kCpus = {.words = "x86, ARM"};
constexpr BackendHardware kAnyGpu = {"any GPU", 1, kLater, true};
constexpr BackendHardware kCdna = {.words = "CDNA", .cdna = true};
constexpr BackendHardware kCdna3 = {.words = "CDNA3, CDNA4", .cdna = true};
constexpr BackendHardware kSm80 = {"SM80 and later", 80, kLater};
constexpr BackendHardware kSm80To121 = {"SM80 to SM121", 80, 121};
constexpr BackendHardware kSm90 = {"SM90", 90, 99};
constexpr BackendHardware kSm90To100 = {"SM90, SM100", 90, 109};
constexpr BackendHardware kSm100 = {"SM100", 100, 109};
constexpr BackendHardware kSm120 = {"SM120, SM121", 120, 129};

// What a backend does with passes of several query rows per sequence.
struct MultiToken {
  bool causal = false;
  bool non_causal = false;
  bool causal_dcp = false;
  bool non_causal_dcp = false;
};

class Builder {
 public:
  Builder(std::string_view name, const BackendHardware& hardware, std::vector<LayoutKind> layouts) {
    row_.facts.name = name;
    row_.facts.layouts = std::move(layouts);
    row_.hardware = hardware;
    row_.source = kVllm;
  }
  Builder& Engine(std::string_view names) {
    row_.engine = names;
    return *this;
  }
  Builder& Dtypes(std::vector<DType> dtypes) {
    row_.facts.cache_dtypes = std::move(dtypes);
    return *this;
  }
  Builder& Pages(std::vector<std::int64_t> pages) {
    row_.facts.page_tokens = std::move(pages);
    return *this;
  }
  Builder& Multiples(std::int64_t of) {
    row_.page_multiple = of;
    return Pages({16, 32, 64, 128});
  }
  Builder& Passes(MultiToken passes) {
    row_.facts.causal_multi_token = passes.causal;
    row_.facts.non_causal_multi_token = passes.non_causal;
    row_.facts.causal_multi_token_dcp = passes.causal_dcp;
    row_.facts.non_causal_multi_token_dcp = passes.non_causal_dcp;
    return *this;
  }
  Builder& EngineDcp(bool causal, bool non_causal) {
    row_.engine_causal_dcp = causal;
    row_.engine_non_causal_dcp = non_causal;
    return *this;
  }
  Builder& Lse(LseBase base, std::string_view empty_row = "") {
    row_.lse = base;
    row_.empty_row = empty_row;
    row_.facts.lse = base != LseBase::kNone;
    return *this;
  }
  Builder& Graphs(GraphClass graphs) {
    row_.graphs = graphs;
    row_.facts.graphs = graphs != GraphClass::kNever;
    return *this;
  }
  Builder& Heads(std::int64_t most, std::vector<HeadTile> tiles = {}) {
    row_.facts.heads_max = most;
    row_.facts.head_tiles = std::move(tiles);
    return *this;
  }
  Builder& Rows(std::int64_t most) {
    row_.facts.block_rows_max = most;
    return *this;
  }
  BackendRow From(std::string_view source) {
    row_.source = source;
    return std::move(row_);
  }
  BackendRow Done() { return std::move(row_); }

 private:
  BackendRow row_;
};

using Kinds = std::vector<LayoutKind>;
using Dtypes = std::vector<DType>;

const Dtypes& Half() {
  static const Dtypes kHalf = {DType::kBf16, DType::kF16};
  return kHalf;
}
const Dtypes& HalfAndFp8() {
  static const Dtypes kHalfAndFp8 = {DType::kBf16, DType::kF16, DType::kFp8E4M3};
  return kHalfAndFp8;
}

void AppendLatent(std::vector<BackendRow>& rows) {
  const Kinds latent = {LayoutKind::kLatent};
  const auto uniform = GraphClass::kUniform;
  rows.push_back(Builder("cpu_mla", kCpus, latent)
                     .Engine("CPU_MLA")
                     .Dtypes({DType::kBf16, DType::kF16, DType::kF32})
                     .Pages({16})
                     .Done());
  rows.push_back(Builder("cutlass_mla", kSm100, latent)
                     .Engine("CUTLASS_MLA")
                     .Dtypes(HalfAndFp8())
                     .Pages({128})
                     .Heads(128)
                     .Lse(LseBase::kNatural)
                     .Graphs(GraphClass::kSingleToken)
                     .Done());
  rows.push_back(Builder("flashattn_mla", kSm90, latent)
                     .Engine("FLASH_ATTN_MLA")
                     .Dtypes(Half())
                     .Multiples(16)
                     .Passes({.causal = true, .causal_dcp = true})
                     .EngineDcp(true, false)
                     .Lse(LseBase::kNatural)
                     .Graphs(uniform)
                     .Done());
  rows.push_back(
      Builder("flashinfer_cutedsl", kSm100, latent)
          .Engine("FLASHINFER_MLA")
          .Dtypes(HalfAndFp8())
          .Pages({32, 64, 128})
          .Passes({.causal = true, .non_causal = true, .causal_dcp = true})
          .EngineDcp(true, false)
          .Lse(LseBase::kNatural)
          .Graphs(uniform)
          .From("FlashInfer tests/attention/test_cute_dsl_mla_decode.py, test_cute_dsl_mla_dcp.py"));
}

// Sparse rows, and what is not NVIDIA's.
void AppendMoreLatent(std::vector<BackendRow>& rows) {
  const Kinds latent = {LayoutKind::kLatent};
  const auto uniform = GraphClass::kUniform;
  rows.push_back(Builder("flashinfer_mla_sparse", kSm100, latent)
                     .Engine("FLASHINFER_MLA_SPARSE")
                     .Dtypes(HalfAndFp8())
                     .Pages({32, 64})
                     .Passes({.causal = true})
                     .Lse(LseBase::kLog2)
                     .Graphs(uniform)
                     .Done());
  rows.push_back(Builder("flashinfer_xqa_mla", kSm120, latent)
                     .Engine("FLASHINFER_MLA_SPARSE_SM120")
                     .Dtypes({DType::kBf16, DType::kFp8E4M3})
                     .Pages({64, 256})
                     .Heads(128)
                     .Passes({.causal = true})
                     .Graphs(uniform)
                     .Done());
  rows.push_back(Builder("flashmla", kSm90To100, latent)
                     .Engine("FLASHMLA")
                     .Dtypes(HalfAndFp8())
                     .Pages({64})
                     .Passes({.causal = true, .causal_dcp = true})
                     .Lse(LseBase::kNatural, "O = 0, LSE = +inf")
                     .Graphs(uniform)
                     .From("FlashMLA README and tests/test_flash_mla_dense_decoding.py"));
  rows.push_back(
      Builder("flashmla_sparse", kSm90To100, latent)
          .Engine("FLASHMLA_SPARSE")
          .Dtypes({DType::kBf16})
          .Pages({64})
          .Heads(128)
          .Passes({.causal = true})
          .Lse(LseBase::kNatural)
          .Graphs(uniform)
          .From("FlashMLA README; also rows of 656 and 584 bytes (fp8_ds_mla); 64 or 128 heads, padded"));
  rows.push_back(
      Builder("rocm_aiter_mla", kCdna3, latent)
          .Engine("ROCM_AITER_MLA")
          .Dtypes(HalfAndFp8())
          .Multiples(1)
          .Passes({.causal = true})
          .Lse(LseBase::kNone, "LSE = -inf")
          .Graphs(uniform)
          .From("vLLM mla/rocm_aiter_mla.py; at least 16 heads, repeated; vllm#55590: is_causal is ignored"));
  rows.push_back(Builder("rocm_aiter_mla_sparse", kCdna3, latent)
                     .Engine("ROCM_AITER_MLA_SPARSE")
                     .Dtypes(HalfAndFp8())
                     .Multiples(1)
                     .Passes({.causal = true})
                     .Graphs(uniform)
                     .Done());
  rows.push_back(Builder("tokenspeed", kSm100, latent)
                     .Engine("TOKENSPEED_MLA")
                     .Dtypes({DType::kFp8E4M3})
                     .Pages({32, 64})
                     .Heads(128)
                     .Rows(8)
                     .Passes({true, true, true, true})
                     .EngineDcp(true, true)
                     .Lse(LseBase::kLog2)
                     .Graphs(uniform)
                     .From("tokenspeed tokenspeed_mla; 8 rows in the workspace; vLLM mla/tokenspeed_mla.py"));
}

void AppendKeyValue(std::vector<BackendRow>& rows) {
  const Kinds key_value = {LayoutKind::kKeyValue};
  rows.push_back(Builder("flashattn", kSm80, key_value)
                     .Engine("FLASH_ATTN FLASH_ATTN_DIFFKV")
                     .Dtypes(HalfAndFp8())
                     .Multiples(16)
                     .Passes({true, true, true, true})
                     .Lse(LseBase::kNatural)
                     .Graphs(GraphClass::kUniform)
                     .Done());
  rows.push_back(
      Builder("flashinfer", kSm80To121, key_value)
          .Engine("FLASHINFER")
          .Dtypes(HalfAndFp8())
          .Pages({16, 32, 64})
          .Passes({.causal = true, .non_causal = true})
          .Lse(LseBase::kLog2)
          .Graphs(GraphClass::kSingleToken)
          .From("vLLM v1/attention/backends/flashinfer.py; trtllm-gen on SM100 captures uniform batches"));
  rows.push_back(Builder("rocm_aiter_fa", kCdna3, key_value)
                     .Engine("ROCM_AITER_FA")
                     .Dtypes(HalfAndFp8())
                     .Pages({16, 32})
                     .Passes({.causal = true, .non_causal = true})
                     .Graphs(GraphClass::kUniform)
                     .Done());
  rows.push_back(Builder("rocm_aiter_unified", kCdna3, key_value)
                     .Engine("ROCM_AITER_UNIFIED_ATTN")
                     .Dtypes(HalfAndFp8())
                     .Multiples(16)
                     .Passes({.causal = true})
                     .Graphs(GraphClass::kAlways)
                     .Done());
  rows.push_back(Builder("rocm_attn", kCdna, key_value)
                     .Engine("ROCM_ATTN")
                     .Dtypes(HalfAndFp8())
                     .Multiples(16)
                     .Passes({.causal = true, .non_causal = true})
                     .Graphs(GraphClass::kAlways)
                     .Done());
}

void AppendMixed(std::vector<BackendRow>& rows) {
  const Kinds both = {LayoutKind::kKeyValue, LayoutKind::kLatent};
  const Kinds all = {LayoutKind::kKeyValue, LayoutKind::kLatent, LayoutKind::kState};
  rows.push_back(Builder("fla", kAnyGpu, {LayoutKind::kState})
                     .Passes({.causal = true, .causal_dcp = true})
                     .Lse(LseBase::kNatural, "no rows: a state is not combined")
                     .Graphs(GraphClass::kUniform)
                     .From("flash-linear-attention fla/ops"));
  rows.push_back(Builder("flashinfer_trtllm", kSm100, both)
                     .Engine("FLASHINFER_MLA")
                     .Dtypes(HalfAndFp8())
                     .Pages({32, 64})
                     .Heads(0, {{8, 8}, {32, 16}, {0, 64}})
                     .Passes({.causal = true, .non_causal = true})
                     .EngineDcp(true, false)
                     .Lse(LseBase::kLog2)
                     .Graphs(GraphClass::kUniform)
                     .From("vLLM mla/flashinfer_mla.py: tiles of 8, 16, 64 heads; FlashInfer trtllm-gen"));
  rows.push_back(Builder("reference", kAnyCpu, all)
                     .Dtypes({DType::kBf16, DType::kF32})
                     .Multiples(16)
                     .Passes({true, true, true, true})
                     .Lse(LseBase::kNatural, "O = 0, LSE = -inf")
                     .Graphs(GraphClass::kAlways)
                     .From("worker/cpu of this repository"));
  rows.push_back(
      Builder("triton", kAnyGpu, both)
          .Engine("TRITON_MLA TRITON_ATTN")
          .Dtypes(HalfAndFp8())
          .Multiples(16)
          .Passes({true, true, true, true})
          .Lse(LseBase::kNatural, "O = 0, LSE = -inf")
          .Graphs(GraphClass::kSingleToken)
          .From("vLLM mla/triton_mla.py, triton_attn.py: blocks are flattened to rows of one token"));
}

}  // namespace

std::vector<BackendRow> MakeBackendRows() {
  std::vector<BackendRow> rows;
  AppendLatent(rows);
  AppendMoreLatent(rows);
  AppendKeyValue(rows);
  AppendMixed(rows);
  return rows;
}

}  // namespace kvasir
