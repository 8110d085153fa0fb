#include "planner/request/packed_rows.h"

#include <array>
#include <string_view>
#include <utility>

namespace kvasir {

using vllm::EngineSpec;
using vllm::QuantMode;

namespace {

// Bytes of one head's K and V of one token, as TurboQuant packs them: keys fp8 or `key_bits` and a norm,
// values `value_bits` and a scale and a zero; an even number.
std::int64_t TurboquantBytes(QuantMode mode, std::int64_t dim) {
  const bool fp8_keys = mode == QuantMode::kTurboquantK8v4;
  const bool three = mode == QuantMode::kTurboquantK3v4Nc || mode == QuantMode::kTurboquant3bitNc;
  const std::int64_t key_bits = three ? 3 : 4;
  const std::int64_t value_bits = mode == QuantMode::kTurboquant3bitNc ? 3 : 4;
  const std::int64_t keys = fp8_keys ? dim : (dim * key_bits + 7) / 8 + 2;
  const std::int64_t values = (dim * value_bits + 7) / 8 + 4;
  return keys + values + (keys + values) % 2;
}

}  // namespace

QuantMode QuantModeOf(const std::string& word) {
  constexpr std::array<std::pair<std::string_view, QuantMode>, 8> kWords = {{
      {"int4_per_token_head", QuantMode::kInt4PerTokenHead},
      {"int8_per_token_head", QuantMode::kInt8PerTokenHead},
      {"fp8_per_token_head", QuantMode::kFp8PerTokenHead},
      {"nvfp4_ds_mla", QuantMode::kNvfp4DsMla},
      {"turboquant_k8v4", QuantMode::kTurboquantK8v4},
      {"turboquant_4bit_nc", QuantMode::kTurboquant4bitNc},
      {"turboquant_k3v4_nc", QuantMode::kTurboquantK3v4Nc},
      {"turboquant_3bit_nc", QuantMode::kTurboquant3bitNc},
  }};
  for (const auto& [name, mode] : kWords) {
    if (word == name) return mode;
  }
  if (word.substr(0, 5) == "nvfp4") return QuantMode::kNvfp4;
  return word.substr(0, 3) == "fp8" ? QuantMode::kFp8PerTensor : QuantMode::kNone;
}

void PackRows(EngineSpec& spec) {
  switch (spec.kv_quant_mode) {
    case QuantMode::kInt8PerTokenHead:
    case QuantMode::kFp8PerTokenHead:
      spec.state_content_bytes = spec.head_size + spec.head_size_v + 8;
      break;
    case QuantMode::kInt4PerTokenHead:
      spec.state_content_bytes = spec.head_size / 2 + spec.head_size_v / 2 + 8;
      break;
    case QuantMode::kNvfp4:
      spec.num_head_slots = 2 * spec.num_kv_heads;
      spec.state_content_bytes = spec.head_size / 2 + spec.head_size / 16;
      break;
    case QuantMode::kTurboquantK8v4:
    case QuantMode::kTurboquant4bitNc:
    case QuantMode::kTurboquantK3v4Nc:
    case QuantMode::kTurboquant3bitNc:
      spec.state_content_bytes = TurboquantBytes(spec.kv_quant_mode, spec.head_size);
      break;
    default:
      break;
  }
}

}  // namespace kvasir
