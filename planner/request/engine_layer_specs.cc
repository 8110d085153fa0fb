#include "planner/request/engine_layer_specs.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "planner/request/packed_rows.h"

namespace kvasir {
namespace {

using vllm::ElementType;
using vllm::EngineSpec;
using vllm::QuantMode;
using vllm::SpecKind;
using Shapes = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t kDs4Alignment = 576;    // bytes; FlashMLA's packing
constexpr std::int64_t kPlainAlignment = 512;  // bytes; rows without it
constexpr std::int64_t kScaledLanes = 128;     // fp8 keys have one f32 scale for so many

struct SpecOf {
  const LayerSetting& setting;
  using Spec = std::optional<EngineSpec>;

  Spec operator()(const AttentionShape& s) const {
    if (s.shares_with.has_value()) return std::nullopt;
    const bool windowed = s.window > 0 && !setting.windows_as_full;
    EngineSpec spec = vllm::MakeSpec(windowed ? SpecKind::kSliding : SpecKind::kFull);
    if (s.chunk > 0) {
      spec = vllm::MakeSpec(SpecKind::kChunkedLocal);
      spec.attention_chunk_size = s.chunk;
    }
    FillHeads(s.kv_heads, s.head_dim, s.value_dim, spec);
    if (windowed) {
      spec.sliding_window = s.window;
      spec.block_size = setting.window_block;
    }
    return spec;
  }

  Spec operator()(const MlaShape& s) const {
    const bool windowed = s.window > 0 && !setting.windows_as_full;
    EngineSpec spec = vllm::MakeSpec(windowed ? SpecKind::kSlidingMla : SpecKind::kMla);
    spec.block_size = setting.block;
    spec.num_kv_heads = 1;
    spec.head_size = s.kv_lora_rank + s.rope_dim;
    spec.head_size_v = 0;
    spec.dtype = CacheElement();
    spec.kv_quant_mode = QuantModeOf(setting.cache_dtype);
    spec.cache_dtype_str = setting.cache_dtype;
    spec.indexes_kv_by_block_stride = true;
    if (windowed) {
      spec.sliding_window = s.window;
    } else {
      spec.non_causal_multi_token_decode = setting.non_causal;
    }
    if (setting.deepseek_v4) {
      MakeDeepseekV4(s, windowed, spec);
    } else if (setting.cache_dtype == "fp8_ds_mla") {
      // fp8 latent lanes, a scale for each 128 of them, bf16 rope lanes.
      spec.state_content_bytes = s.kv_lora_rank + s.kv_lora_rank / kScaledLanes * 4 + 2 * s.rope_dim;
    } else if (setting.cache_dtype == "nvfp4_ds_mla") {
      // fp4 latent lanes with fp8 scales for each 16, bf16 rope lanes, and padding to 16 bytes (a fork's
      // layout).
      const std::int64_t bytes = s.kv_lora_rank / 2 + s.kv_lora_rank / 16 + 2 * s.rope_dim;
      spec.state_content_bytes = (bytes + 15) / 16 * 16;
    } else if (spec.kv_quant_mode == QuantMode::kNvfp4) {
      spec.state_content_bytes = spec.head_size / 2 + spec.head_size / 16;
    }
    return spec;
  }

  Spec operator()(const IndexerShape& s) const {
    EngineSpec spec = vllm::MakeSpec(SpecKind::kMla);
    spec.block_size = setting.block;
    spec.num_kv_heads = 1;
    spec.head_size_v = 0;
    const bool plain = !s.fp8_keys && setting.indexer_dtype.substr(0, 3) != "fp8";
    spec.head_size = s.head_dim;
    spec.dtype = plain ? setting.model_dtype : ElementType::kFloat8E4m3fn;
    if (s.fp8_keys) {
      spec.head_size = s.head_dim + s.head_dim / kScaledLanes * 4;
      spec.dtype = ElementType::kUint8;
    }
    spec.cache_role = vllm::CacheRole::kIndexer;
    if (s.ratio > 1) {
      spec.tokens_per_state = {s.ratio, 1};
      spec.alignment = Alignment();
    }
    return spec;
  }

  Spec operator()(const CompressorShape& s) const {
    EngineSpec spec = vllm::MakeSpec(SpecKind::kSlidingMla);
    spec.block_size = s.ratio <= 4 ? 4 : 8;  // what shares a page with the compressed rows
    spec.num_kv_heads = 1;
    spec.head_size = s.width;
    spec.head_size_v = 0;
    spec.dtype = ElementType::kFloat32;
    spec.sliding_window = s.window;
    spec.alignment = Alignment();
    return spec;
  }

  Spec operator()(const CrossAttentionShape& s) const {
    EngineSpec spec = vllm::MakeSpec(SpecKind::kCross);
    FillHeads(s.kv_heads, s.head_dim, s.value_dim, spec);
    return spec;
  }
  Spec operator()(const EncoderAttentionShape&) const { return std::nullopt; }
  Spec operator()(const NoMixer&) const { return std::nullopt; }

  Spec operator()(const HiddenStateShape& s) const {
    EngineSpec spec = vllm::MakeSpec(SpecKind::kHiddenState);
    spec.block_size = setting.block;
    spec.num_kv_heads = s.taps;
    spec.head_size = s.width;
    spec.head_size_v = 0;
    spec.dtype = setting.model_dtype;
    return spec;
  }

  Spec operator()(const KdaShape& s) const {
    const std::int64_t heads = Share(s.heads);
    Shapes shapes = {Conv(s.conv_kernel - 1 + setting.spec_tokens, Share(3 * s.heads * s.head_dim)),
                     {heads, s.head_dim, s.head_dim}};
    std::vector<ElementType> dtypes = {ConvDtype(), ElementType::kFloat32};
    if (setting.recover) {
      shapes.push_back({heads, 1 + setting.spec_tokens, s.head_dim});
      shapes.push_back({heads, 1 + setting.spec_tokens, 2 * s.head_dim});
      dtypes.insert(dtypes.end(), {ElementType::kFloat32, setting.model_dtype});
    }
    return State("kda", std::move(shapes), std::move(dtypes));
  }

  Spec operator()(const Mamba1Shape& s) const {
    return State("mamba1", {Conv(s.conv_kernel - 1, Share(s.inner)), {Share(s.inner), s.state_dim}},
                 {ConvDtype(), StateDtype(s.state_dtype)});
  }

  Spec operator()(const Mamba2Shape& s) const {
    // Groups are repeated until each rank has one.
    const std::int64_t groups = s.groups % setting.tp == 0 ? s.groups : setting.tp;
    const std::int64_t width = Share(s.heads * s.head_dim + 2 * groups * s.state_dim);
    const std::int64_t rows = s.conv_kernel - 1 + (s.draft_rows ? setting.spec_tokens : 0);
    const std::int64_t heads = Share(s.heads);
    Shapes shapes = {Conv(rows, width), {heads, s.head_dim, s.state_dim}};
    std::vector<ElementType> dtypes = {ConvDtype(), StateDtype(s.state_dtype)};
    if (setting.replay_buffer > 0) {
      shapes.push_back({heads, setting.replay_buffer, s.head_dim});
      shapes.push_back({heads, setting.replay_buffer});
      shapes.push_back({Share(s.groups), setting.replay_buffer, s.state_dim});
      dtypes.insert(dtypes.end(), {setting.model_dtype, ElementType::kFloat32, setting.model_dtype});
    }
    return State("mamba2", std::move(shapes), std::move(dtypes));
  }

  Spec operator()(const GatedDeltaShape& s) const {
    const std::int64_t width = Share(2 * s.key_dim * s.key_heads + s.value_dim * s.value_heads);
    return State("gdn_attention",
                 {Conv(s.conv_kernel - 1 + setting.spec_tokens, width),
                  {Share(s.value_heads), s.value_dim, s.key_dim}},
                 {ConvDtype(), StateDtype(s.state_dtype)});
  }

  Spec operator()(const LightningShape& s) const {
    return State("linear_attention", {{Share(s.heads), s.head_dim, s.head_dim}}, {ConvDtype()});
  }

  Spec operator()(const ShortConvShape& s) const {
    return State("short_conv", {Conv(s.conv_kernel - 1, Share(s.width))}, {ConvDtype()});
  }

 private:
  [[nodiscard]] std::int64_t Share(std::int64_t of) const {
    return std::max<std::int64_t>(1, of / setting.tp);
  }

  [[nodiscard]] ElementType CacheElement() const {
    return ElementOfWord(setting.cache_dtype).value_or(setting.model_dtype);
  }
  [[nodiscard]] std::int64_t Alignment() const {
    return setting.cache_dtype == "fp8_ds_mla" ? kDs4Alignment : kPlainAlignment;
  }

  void FillHeads(std::int64_t kv_heads, std::int64_t key_dim, std::int64_t value_dim,
                 EngineSpec& spec) const {
    spec.block_size = setting.block;
    spec.num_kv_heads = Share(kv_heads);
    spec.head_size = key_dim;
    spec.head_size_v = value_dim;
    // The latent rows' layout of a sparse model's words is plain fp8 for rows with heads.
    const std::string word = setting.cache_dtype == "fp8_ds_mla" ? "fp8" : setting.cache_dtype;
    spec.dtype = ElementOfWord(word).value_or(setting.model_dtype);
    spec.kv_quant_mode = QuantModeOf(word);
    spec.indexes_kv_by_block_stride = true;
    PackRows(spec);
  }

  // 448 fp8 and 64 bf16 lanes, seven scales and padding: 584 bytes; else rows of the cache's dtype.
  void MakeDeepseekV4(const MlaShape& s, bool windowed, EngineSpec& spec) const {
    spec.alignment = Alignment();
    spec.model_version = "deepseek_v4";
    spec.tokens_per_state = {s.ratio, 1};
    if (windowed) spec.block_size = 64;  // shares a page with 256 compressed tokens
    if (setting.cache_dtype == "fp8_ds_mla") spec.state_content_bytes = spec.head_size + s.rope_dim + 8;
    if (setting.cache_dtype == "nvfp4_ds_mla") spec.state_content_bytes = 384;
  }

  [[nodiscard]] std::vector<std::int64_t> Conv(std::int64_t rows, std::int64_t width) const {
    return setting.state_dim_first ? std::vector<std::int64_t>{width, rows}
                                   : std::vector<std::int64_t>{rows, width};
  }
  [[nodiscard]] ElementType ConvDtype() const { return setting.conv_dtype.value_or(setting.model_dtype); }
  [[nodiscard]] ElementType StateDtype(std::optional<DType> of_model) const {
    if (setting.state_dtype.has_value()) return *setting.state_dtype;
    return of_model.has_value() ? ElementOf(*of_model) : ConvDtype();
  }

  [[nodiscard]] EngineSpec State(const char* type, Shapes shapes, std::vector<ElementType> dtypes) const {
    EngineSpec spec = vllm::MakeSpec(SpecKind::kMamba);
    spec.block_size = setting.state_block;
    spec.page_size_padded = setting.state_page;
    spec.shapes = std::move(shapes);
    spec.dtypes = std::move(dtypes);
    spec.mamba_type = type;
    spec.mamba_cache_mode = setting.mode;
    spec.num_speculative_blocks = setting.recover ? 0 : setting.spec_tokens;
    return spec;
  }
};

}  // namespace

std::optional<ElementType> ElementOfWord(const std::string& word) {
  if (word == "bfloat16") return ElementType::kBfloat16;
  if (word == "float16" || word == "half") return ElementType::kFloat16;
  if (word == "float32" || word == "float") return ElementType::kFloat32;
  if (word == "int8_per_token_head") return ElementType::kInt8;
  if (word == "fp8_inc") return ElementType::kFloat8E4m3fn;
  const bool packed = word.substr(0, 3) == "fp8" || word.substr(0, 5) == "nvfp4" ||
                      word.substr(0, 5) == "turbo" || word.substr(0, 4) == "int4";
  return packed ? std::optional<ElementType>(ElementType::kUint8) : std::nullopt;
}

ElementType ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return ElementType::kBfloat16;
    case DType::kF16:
      return ElementType::kFloat16;
    case DType::kF32:
      return ElementType::kFloat32;
    case DType::kFp8E4M3:
      return ElementType::kFloat8E4m3fn;
  }
  return ElementType::kBfloat16;
}

std::optional<EngineSpec> LayerSpecOf(const MixerShape& mixer, const LayerSetting& setting) {
  return std::visit(SpecOf{setting}, mixer);
}

}  // namespace kvasir
