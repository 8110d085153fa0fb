#include "common/models/quantisation_fields.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/limits.h"
#include "common/models/check_model.h"
#include "common/models/config_fields.h"
#include "common/models/weight_class.h"

namespace kvasir {
namespace {

constexpr WeightFormat kNvfp4{.bits = 4, .group = 16, .scale_bits = 8};
constexpr WeightFormat kMxfp4{.bits = 4, .group = 32, .scale_bits = 8};
constexpr WeightFormat kMxfp8{.bits = 8, .group = 32, .scale_bits = 8};
constexpr WeightFormat kFp8{.bits = 8};
constexpr WeightFormat kFp8Blocks{.bits = 8, .group = std::int64_t{128} * 128, .scale_bits = 32};
constexpr WeightFormat kInt4{.bits = 4, .group = 128, .scale_bits = 16};

// Lists of modules have an entry for each of thousands of matrices.
constexpr std::int64_t kModulesMax = 1 << 18;

constexpr IntRange kBitsRange{1, 32};
constexpr IntRange kGroupRange{-1, kDimMax};

// ModelOpt's names. An unknown one gives no sizes.
WeightFormat FormatOfAlgorithm(std::string_view name) {
  constexpr std::array kNames = {std::pair{std::string_view("NVFP4"), kNvfp4},
                                 std::pair{std::string_view("W4A16_NVFP4"), kNvfp4},
                                 std::pair{std::string_view("NVFP4_AWQ"), kNvfp4},
                                 std::pair{std::string_view("FP8"), kFp8},
                                 std::pair{std::string_view("FP8_PB_WO"), kFp8Blocks},
                                 std::pair{std::string_view("MXFP8"), kMxfp8},
                                 std::pair{std::string_view("MXFP4"), kMxfp4},
                                 std::pair{std::string_view("W4A8_AWQ"), kInt4},
                                 std::pair{std::string_view("W4A16_AWQ"), kInt4}};
  for (const auto& [known, format] : kNames) {
    if (known == name) return format;
  }
  return {};
}

// `format` for every class but those that `out` covers.
void SetAll(const WeightFormat& format, const ModuleCount& out, WeightQuantisation& result) {
  for (std::size_t i = 0; i < kWeightClasses; ++i) {
    const auto weights = static_cast<WeightClass>(i);
    if (!out.Covers(weights)) FormatOf(weights, result) = format;
  }
}

ModuleCount ReadModules(const ConfigObject& q, std::initializer_list<std::string_view> fields,
                        const std::vector<ModelLayer>& layers) {
  ModuleCount count(layers);
  for (const std::string_view field : fields) {
    if (!q.Has(field)) continue;
    for (const std::string& module : q.TextList(field, kModulesMax)) count.Add(module);
  }
  return count;
}

// A list, module by module, of what each is quantised with.
void ReadQuantisedLayers(const ConfigObject& q, WeightQuantisation& result) {
  const std::optional<ConfigObject> layers = q.ObjectIf("quantized_layers");
  if (!layers.has_value()) return;
  FormatVote vote;
  for (const auto& [module, how] : layers->Members())
    vote.Add(module, FormatOfAlgorithm(how.TextOr("quant_algo", "")));
  vote.Decide(result);
}

void ReadFp8(const ConfigObject& config, const ConfigObject& q, const std::vector<ModelLayer>& layers,
             WeightQuantisation& result) {
  WeightFormat format = kFp8;
  if (q.Has("weight_block_size")) {
    const std::vector<std::int64_t> block = q.IntList("weight_block_size", {1, 1 << 10});
    format = kFp8Blocks;
    format.group = 1;
    for (const std::int64_t side : block) format.group = std::min(kDimMax, format.group * side);
  }
  ModuleCount out = ReadModules(q, {"modules_to_not_convert", "ignored_layers"}, layers);
  out.Add("lm_head");
  SetAll(format, out, result);
  if (config.TextOr("expert_dtype", "") == "fp4") result.experts = kMxfp4;
  ReadQuantisedLayers(q, result);
}

WeightFormat ReadGroupFormat(const ConfigObject& group, std::string_view packing) {
  const std::optional<ConfigObject> weights = group.ObjectIf("weights");
  if (!weights.has_value()) return {};
  WeightFormat format;
  format.bits = weights->IntOr("num_bits", kBitsRange, 8);
  format.group = std::max<std::int64_t>(0, weights->IntOr("group_size", kGroupRange, 0));
  if (format.group == 0) return format;
  const bool small =
      packing.starts_with("mxfp4") || packing.starts_with("nvfp4") || weights->Has("scale_dtype");
  format.scale_bits = small ? 8 : 16;
  return format;
}

void ReadCompressedTensors(const ConfigObject& q, const std::vector<ModelLayer>& layers,
                           WeightQuantisation& result) {
  const ModuleCount out = ReadModules(q, {"ignore"}, layers);
  const std::optional<ConfigObject> groups = q.ObjectIf("config_groups");
  if (!groups.has_value()) return;
  for (const auto& [name, group] : groups->Members()) {
    const WeightFormat format = ReadGroupFormat(group, group.TextOr("format", q.TextOr("format", "")));
    FormatVote vote;
    bool all = !group.Has("targets");
    if (!all) {
      for (const std::string& target : group.TextList("targets", kModulesMax)) {
        all = all || target == "Linear";
        vote.Add(target, format);
      }
    }
    if (all) SetAll(format, out, result);
    vote.Decide(result);
  }
}

void ReadModelopt(const ConfigObject& q, const std::vector<ModelLayer>& layers, WeightQuantisation& result) {
  const std::string algorithm = q.TextOr("quant_algo", "");
  const ModuleCount out = ReadModules(q, {"ignore", "exclude_modules", "modules_to_not_convert"}, layers);
  if (algorithm != "MIXED_PRECISION") SetAll(FormatOfAlgorithm(algorithm), out, result);
  ReadQuantisedLayers(q, result);
}

// AWQ, GPTQ and their like: packed integers, a half-precision scale and a zero point for each group.
void ReadPackedIntegers(const ConfigObject& q, const std::vector<ModelLayer>& layers,
                        WeightQuantisation& result) {
  WeightFormat format;
  format.bits = q.IntOr(q.FirstOf({"bits", "w_bit"}), kBitsRange, 4);
  format.group =
      std::max<std::int64_t>(0, q.IntOr(q.FirstOf({"group_size", "q_group_size"}), kGroupRange, 128));
  if (format.group > 0) format.scale_bits = std::min<std::int64_t>(32, 16 + format.bits);
  ModuleCount out = ReadModules(q, {"modules_to_not_convert"}, layers);
  if (!q.BoolOr("lm_head", false)) out.Add("lm_head");
  SetAll(format, out, result);
}

// A dtype of the cache that the checkpoint's own scales ask for.
std::optional<DType> ReadCacheDType(const ConfigObject& q) {
  if (q.TextOr("kv_cache_quant_algo", "") == "FP8") return DType::kFp8E4M3;
  const std::optional<ConfigObject> scheme = q.ObjectIf("kv_cache_scheme");
  const bool fp8 = scheme.has_value() && scheme->IntOr("num_bits", kBitsRange, 0) == 8 &&
                   scheme->TextOr("type", "") == "float";
  return fp8 ? std::optional(DType::kFp8E4M3) : std::nullopt;
}

std::string MethodName(const ConfigObject& q) {
  std::string name = q.TextOr(q.FirstOf({"quant_method", "quant_algo"}), "unnamed").substr(0, 32);
  for (char& c : name) {
    if (!IsModelName(std::string_view(&c, 1))) c = '-';
  }
  return name.empty() ? "unnamed" : name;
}

}  // namespace

WeightQuantisation ReadQuantisation(const ConfigObject& config, const ConfigObject& quantisation,
                                    const std::vector<ModelLayer>& layers) {
  const std::optional<ConfigObject> nested = quantisation.ObjectIf("quantization");
  const ConfigObject& q = nested.has_value() ? *nested : quantisation;
  WeightQuantisation result;
  result.method = MethodName(quantisation);
  result.cache_dtype = ReadCacheDType(q);
  const std::string_view method = result.method;
  if (method == "fp8") ReadFp8(config, q, layers, result);
  if (method == "fbgemm_fp8" || method == "ptpc_fp8") ReadFp8(config, q, layers, result);
  if (method == "compressed-tensors") ReadCompressedTensors(q, layers, result);
  if (method.starts_with("modelopt")) ReadModelopt(q, layers, result);
  if (method == "mxfp4") result.experts = kMxfp4;
  if (method.starts_with("awq") || method.starts_with("gptq")) ReadPackedIntegers(q, layers, result);
  return result;
}

}  // namespace kvasir
