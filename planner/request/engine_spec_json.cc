#include "planner/request/engine_spec_json.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "planner/request/case_object.h"

namespace kvasir {
namespace {

using vllm::EngineSpec;
using vllm::SpecKind;

constexpr CaseRange kTokens{1, std::int64_t{1} << 32};
constexpr CaseRange kTokensOrNone{0, std::int64_t{1} << 32};
constexpr CaseRange kBytes{0, std::int64_t{1} << 50};
constexpr CaseRange kCount{0, std::int64_t{1} << 20};
constexpr CaseRange kAnyNumber{-(std::int64_t{1} << 32), std::int64_t{1} << 32};
constexpr std::size_t kStatesMax = 64;
constexpr std::size_t kDimsMax = 8;
constexpr std::size_t kWordBytesMax = 64;

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= kWordBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// A word of the engine that only its equality matters of.
std::optional<std::string> Word(CaseObject& object, std::string_view key) {
  std::optional<std::string> text = object.MaybeText(key);
  if (text.has_value() && !IsWord(*text)) {
    object.FailText(reason::kBadName, key, "is no word of at most 64 letters, digits, '_', '-' and '.'");
    return std::nullopt;
  }
  return text;
}

// A word that must be in a table.
template <class T>
T Listed(CaseObject& object, std::string_view key, T fallback, std::optional<T> (*parse)(std::string_view),
         std::string_view known) {
  const std::optional<std::string> text = object.MaybeText(key);
  if (!text.has_value()) return fallback;
  const std::optional<T> value = parse(*text);
  if (!value.has_value()) {
    object.FailText(reason::kUnknownValue, key,
                    absl::StrFormat("is \"%s\"; known are %s", text->substr(0, kWordBytesMax), known));
  }
  return value.value_or(fallback);
}

constexpr std::string_view kElementTypes = "torch's names, as bfloat16, float32, uint8";
constexpr std::string_view kQuantModes = "the engine's names, as NONE, FP8_PER_TENSOR, NVFP4";
constexpr std::string_view kCacheModes = "none, align, all";

std::optional<vllm::CacheRole> ParseCacheRole(std::string_view name) {
  const std::string lower = LowerCase(std::string(name));
  if (lower == "sparse") return vllm::CacheRole::kSparse;
  if (lower == "indexer") return vllm::CacheRole::kIndexer;
  return std::nullopt;
}

// "4", 4 or "1/2".
std::optional<vllm::TokensPerState> ParseTokensPerState(const nlohmann::json& value) {
  if (const auto whole = IntIn(value, kTokens); whole.has_value()) return vllm::TokensPerState{*whole, 1};
  if (!value.is_string()) return std::nullopt;
  const auto text = value.get<std::string>();
  std::int64_t parts[2] = {1, 1};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::int64_t& part : parts) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc() || part < 1 || part > kTokens.max) return std::nullopt;
    at = next;
    if (at == end) break;
    if (*at++ != '/') return std::nullopt;
  }
  if (at != end) return std::nullopt;
  const std::int64_t common = std::gcd(parts[0], parts[1]);
  return vllm::TokensPerState{parts[0] / common, parts[1] / common};
}

// 2026-11's tokens_per_state, or 2026-08's compress_ratio.
vllm::TokensPerState ReadTokensPerState(CaseObject& object) {
  const nlohmann::json* const value = object.Find("tokens_per_state");
  const std::optional<std::int64_t> ratio = object.MaybeInt("compress_ratio", kTokens);
  if (value == nullptr) return {ratio.value_or(1), 1};
  const std::optional<vllm::TokensPerState> parsed = ParseTokensPerState(*value);
  if (!parsed.has_value()) {
    object.Fail(reason::kValueOutOfRange, "tokens_per_state", *value,
                "is neither a whole number from 1 nor a fraction as \"1/2\"");
  } else if (ratio.has_value() && *parsed != vllm::TokensPerState{*ratio, 1}) {
    object.FailText(reason::kConflictingFields, "compress_ratio",
                    "differs from tokens_per_state, which is its later name; give one of them");
  }
  return parsed.value_or(vllm::TokensPerState{});
}

void ReadAttention(CaseObject& object, EngineSpec& spec) {
  spec.num_kv_heads = object.Int("num_kv_heads", kCount);
  spec.head_size = object.Int("head_size", kCount);
  const bool latent = vllm::IsMlaKind(spec.kind) || spec.kind == SpecKind::kSlidingMla;
  spec.head_size_v = object.IntOr("head_size_v", kCount, latent ? 0 : spec.head_size);
  if (object.Require("dtype") != nullptr) {
    spec.dtype = Listed(object, "dtype", spec.dtype, vllm::ParseElementType, kElementTypes);
  }
  spec.kv_quant_mode = Listed(object, "kv_quant_mode", spec.kv_quant_mode, vllm::ParseQuantMode, kQuantModes);
  spec.page_size_padded = object.MaybeInt("page_size_padded", kBytes);
  spec.indexes_kv_by_block_stride = object.BoolOr("indexes_kv_by_block_stride", false);
  spec.num_head_slots = object.MaybeInt("num_head_slots", kCount);
  spec.state_content_bytes = object.MaybeInt("state_content_bytes", kBytes);
  spec.tokens_per_state = ReadTokensPerState(object);
}

void ReadFull(CaseObject& object, EngineSpec& spec) {
  spec.sliding_window = object.MaybeInt("sliding_window", kTokensOrNone);
  spec.attention_chunk_size = object.MaybeInt("attention_chunk_size", kTokensOrNone);
  spec.non_causal = object.BoolOr("non_causal", false);
  if (spec.kind == SpecKind::kRswa) spec.rswa_window = object.Int("rswa_window", kTokensOrNone);
  if (spec.kind == SpecKind::kSinkFull) spec.sink_len = object.MaybeInt("sink_len", kTokensOrNone);
}

void ReadLatent(CaseObject& object, EngineSpec& spec) {
  spec.cache_dtype_str = Word(object, "cache_dtype_str");
  spec.alignment = object.MaybeInt("alignment", kTokens);
  spec.model_version = Word(object, "model_version");
  if (!vllm::IsMlaKind(spec.kind)) {
    spec.bounded_replay = object.BoolOr("bounded_replay", false);
    return;
  }
  spec.non_causal_multi_token_decode = object.BoolOr("non_causal_multi_token_decode", false);
  spec.cache_role = Listed(object, "cache_role", spec.cache_role, ParseCacheRole, "sparse, indexer");
  spec.is_index_group_leader = object.BoolOr("is_index_group_leader", false);
  spec.storage_block_size = object.MaybeInt("storage_block_size", kTokens);
}

std::vector<std::vector<std::int64_t>> ReadShapes(CaseObject& object) {
  std::vector<std::vector<std::int64_t>> shapes;
  const nlohmann::json* const list = object.Require("shapes");
  if (list == nullptr) return shapes;
  if (!list->is_array() || list->size() > kStatesMax) {
    object.Fail(reason::kTooManyItems, "shapes", *list, "is no list of at most 64 shapes");
    return shapes;
  }
  for (const nlohmann::json& shape : *list) {
    std::vector<std::int64_t> dims;
    if (shape.is_array() && shape.size() <= kDimsMax) {
      for (const nlohmann::json& dim : shape) {
        if (const auto extent = IntIn(dim, kTokensOrNone); extent.has_value()) dims.push_back(*extent);
      }
    }
    if (!shape.is_array() || dims.size() != shape.size()) {
      object.Fail(reason::kValueOutOfRange, "shapes", shape,
                  "is no list of at most 8 extents from 0 to 2^32");
      return shapes;
    }
    shapes.push_back(std::move(dims));
  }
  return shapes;
}

std::vector<vllm::ElementType> ReadDtypes(CaseObject& object) {
  std::vector<vllm::ElementType> dtypes;
  const nlohmann::json* const list = object.Require("dtypes");
  if (list == nullptr) return dtypes;
  if (!list->is_array() || list->size() > kStatesMax) {
    object.Fail(reason::kTooManyItems, "dtypes", *list, "is no list of at most 64 element types");
    return dtypes;
  }
  for (const nlohmann::json& name : *list) {
    const auto dtype = name.is_string() ? vllm::ParseElementType(name.get<std::string>()) : std::nullopt;
    if (!dtype.has_value()) {
      object.Fail(reason::kUnknownValue, "dtypes", name,
                  "is no element type; use torch's names, as bfloat16");
      return dtypes;
    }
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

void ReadMamba(CaseObject& object, EngineSpec& spec) {
  spec.shapes = ReadShapes(object);
  spec.dtypes = ReadDtypes(object);
  spec.page_size_padded = object.MaybeInt("page_size_padded", kBytes);
  if (auto type = Word(object, "mamba_type"); type.has_value()) spec.mamba_type = LowerCase(*std::move(type));
  spec.mamba_cache_mode =
      Listed(object, "mamba_cache_mode", spec.mamba_cache_mode, vllm::ParseMambaCacheMode, kCacheModes);
  spec.num_speculative_blocks = object.IntOr("num_speculative_blocks", kCount, 0);
  spec.num_prefill_checkpoint_blocks = object.IntOr("num_prefill_checkpoint_blocks", kCount, 0);
  spec.prefill_checkpoint_alignment = object.MaybeInt("prefill_checkpoint_alignment", kTokens);
  spec.tp_replicated = object.BoolOr("tp_replicated", false);
  // Constants of the class, which a dump shows.
  static_cast<void>(object.IntOr("num_heads", {1, 1}, 1));
  static_cast<void>(object.IntOr("tokens_per_state", {-1, -1}, -1));
}

SpecKind ReadKind(CaseObject& object) {
  const std::string_view key = object.Has("kind") ? "kind" : "type";
  const std::optional<std::string> word = object.MaybeText(key);
  if (!word.has_value()) {
    object.FailText(reason::kMissingField, "kind", "is missing; give the spec a kind, as full, mla, mamba");
    return SpecKind::kFull;
  }
  const std::optional<SpecKind> kind = vllm::ParseSpecKind(*word);
  if (!kind.has_value()) {
    object.FailText(reason::kUnknownValue, key,
                    absl::StrFormat("is \"%s\"; docs/formats/engine_specs.md lists the kinds",
                                    word->substr(0, kWordBytesMax)));
  }
  return kind.value_or(SpecKind::kFull);
}

}  // namespace

EngineSpec ReadEngineSpec(const nlohmann::json& node, std::string path, absl::Status& error) {
  CaseObject object(node, std::move(path), error);
  EngineSpec spec = vllm::MakeSpec(ReadKind(object));
  spec.block_size = object.Int("block_size", kTokens);
  spec.dcp_sharded = object.BoolOr("dcp_sharded", spec.dcp_sharded);
  spec.block_stride_alignment = object.MaybeInt("block_stride_alignment", kAnyNumber);
  if (spec.kind == SpecKind::kMamba) {
    ReadMamba(object, spec);
  } else {
    ReadAttention(object, spec);
  }
  if (vllm::IsFullKind(spec.kind)) ReadFull(object, spec);
  if (vllm::IsMlaKind(spec.kind) || spec.kind == SpecKind::kSlidingMla) ReadLatent(object, spec);
  if (vllm::IsSlidingKind(spec.kind)) {
    spec.sliding_window = object.Int("sliding_window", kTokensOrNone);
    spec.extra_retained_tokens = object.IntOr("extra_retained_tokens", kTokensOrNone, 0);
  }
  if (spec.kind == SpecKind::kChunkedLocal) {
    spec.attention_chunk_size = object.Int("attention_chunk_size", kTokensOrNone);
  }
  // Results of the engine that a dump carries along.
  for (const std::string_view derived :
       {"page_size_bytes", "unpadded_page_size_bytes", "max_memory_usage_bytes"}) {
    static_cast<void>(object.Find(derived));
  }
  object.RefuseUnread();
  return spec;
}

}  // namespace kvasir
