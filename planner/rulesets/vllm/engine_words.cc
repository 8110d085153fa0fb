// The words of the engine's enumerations, each in one table.
#include <algorithm>
#include <array>
#include <cstddef>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_failure.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::vllm {
namespace {

struct KindRow {
  std::string_view word;
  std::string_view class_name;
};

// In the order of the enumerations.
constexpr std::array<KindRow, 13> kKinds = {{
    {"full", "FullAttentionSpec"},
    {"mla", "MLAAttentionSpec"},
    {"hidden_state", "HiddenStateCacheSpec"},
    {"rswa", "RSWASpec"},
    {"sink_full", "SinkFullAttentionSpec"},
    {"sliding", "SlidingWindowSpec"},
    {"sliding_mla", "SlidingWindowMLASpec"},
    {"chunked_local", "ChunkedLocalAttentionSpec"},
    {"mamba", "MambaSpec"},
    {"cross", "CrossAttentionSpec"},
    {"encoder_only", "EncoderOnlyAttentionSpec"},
    {"circular_buffer", "CircularBufferSpec"},
    {"kpool_tail", "KpoolTailSpec"},
}};

struct ElementRow {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<ElementRow, 13> kElements = {{
    {"bfloat16", 2},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"float8_e4m3fn", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e5m2", 1},
    {"float8_e5m2fnuz", 1},
    {"int8", 1},
    {"uint8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
}};

constexpr std::array<std::string_view, 11> kQuantModes = {
    "NONE",        "FP8_PER_TENSOR",  "INT8_PER_TOKEN_HEAD", "FP8_PER_TOKEN_HEAD", "INT4_PER_TOKEN_HEAD",
    "NVFP4",       "TURBOQUANT_K8V4", "TURBOQUANT_4BIT_NC",  "TURBOQUANT_K3V4_NC", "TURBOQUANT_3BIT_NC",
    "NVFP4_DS_MLA"};
constexpr std::array<std::string_view, 3> kCacheModes = {"none", "align", "all"};
constexpr std::array<std::string_view, 6> kLayouts = {"LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"};
constexpr std::array<std::string_view, 4> kStages = {"input", "plan", "concurrency", "block_sizes"};
constexpr std::array<std::string_view, 9> kErrors = {
    "ValueError",     "AssertionError", "NotImplementedError", "ZeroDivisionError", "TypeError",
    "AttributeError", "StopIteration",  "NotInVersion",        "TooLarge"};

template <class Table, class Name>
std::ptrdiff_t RowOf(const Table& table, std::string_view word, Name name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& r) { return name(r) == word; });
  return row == table.end() ? -1 : row - table.begin();
}

template <class Enum, class Table, class Name>
std::optional<Enum> Parsed(const Table& table, std::string_view word, Name name) {
  const std::ptrdiff_t row = RowOf(table, word, name);
  if (row < 0) return std::nullopt;
  return static_cast<Enum>(row);
}

constexpr auto kSelf = [](std::string_view word) { return word; };

}  // namespace

std::string_view EngineVersionName(EngineVersion version) {
  return version == EngineVersion::k2026_08 ? "vllm-2026-08" : "vllm-2026-11";
}

std::optional<EngineVersion> ParseEngineVersion(std::string_view name) {
  for (const EngineVersion version : {EngineVersion::k2026_08, EngineVersion::k2026_11}) {
    if (EngineVersionName(version) == name) return version;
  }
  return std::nullopt;
}

std::string_view SpecKindWord(SpecKind kind) { return kKinds.at(static_cast<std::size_t>(kind)).word; }
std::string_view SpecClassName(SpecKind kind) { return kKinds.at(static_cast<std::size_t>(kind)).class_name; }
std::optional<SpecKind> ParseSpecKind(std::string_view word) {
  const auto by_word = Parsed<SpecKind>(kKinds, word, [](const KindRow& row) { return row.word; });
  if (by_word.has_value()) return by_word;
  return Parsed<SpecKind>(kKinds, word, [](const KindRow& row) { return row.class_name; });
}

std::string_view ElementTypeName(ElementType type) {
  return kElements.at(static_cast<std::size_t>(type)).name;
}
std::int64_t ElementBytes(ElementType type) { return kElements.at(static_cast<std::size_t>(type)).bytes; }
std::optional<ElementType> ParseElementType(std::string_view name) {
  return Parsed<ElementType>(kElements, name, [](const ElementRow& row) { return row.name; });
}

std::string_view QuantModeName(QuantMode mode) { return kQuantModes.at(static_cast<std::size_t>(mode)); }
std::optional<QuantMode> ParseQuantMode(std::string_view name) {
  return Parsed<QuantMode>(kQuantModes, name, kSelf);
}

std::string_view MambaCacheModeName(MambaCacheMode mode) {
  return kCacheModes.at(static_cast<std::size_t>(mode));
}
std::optional<MambaCacheMode> ParseMambaCacheMode(std::string_view name) {
  return Parsed<MambaCacheMode>(kCacheModes, name, kSelf);
}

std::string_view KvLayoutName(KvLayout layout) { return kLayouts.at(static_cast<std::size_t>(layout)); }
std::optional<KvLayout> ParseKvLayout(std::string_view name) {
  return Parsed<KvLayout>(kLayouts, name, kSelf);
}

std::string_view EngineStageName(EngineStage stage) { return kStages.at(static_cast<std::size_t>(stage)); }
std::string_view EngineErrorKindName(EngineErrorKind kind) {
  return kErrors.at(static_cast<std::size_t>(kind));
}

}  // namespace kvasir::vllm
