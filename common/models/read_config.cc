#include "common/models/read_config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"
#include "common/models/adapters.h"
#include "common/models/check_model.h"
#include "common/models/config_error.h"
#include "common/models/config_object.h"
#include "common/models/config_text.h"
#include "common/models/quantisation_fields.h"

namespace kvasir {
namespace {

// By architecture, in byte order.
constexpr std::array kAdapters = {
    Adapter{"AquilaForCausalLM", ReadLlama},
    Adapter{"ArceeForCausalLM", ReadLlama},
    Adapter{"BambaForCausalLM", ReadGraniteHybrid},
    Adapter{"BartForConditionalGeneration", ReadBart},
    Adapter{"BartModel", ReadBart},
    Adapter{"BertModel", ReadBert},
    Adapter{"Cohere2ForCausalLM", ReadCohere2},
    Adapter{"CohereForCausalLM", ReadCohere},
    Adapter{"CosyVoice3Eagle3LlamaForCausalLM", ReadEagle3},
    Adapter{"DFlashDraftModel", ReadDflash},
    Adapter{"DSparkDraftModel", ReadDspark},
    Adapter{"DbrxForCausalLM", ReadDbrx},
    Adapter{"DeciLMForCausalLM", ReadNemotronNas},
    Adapter{"DeepseekV2ForCausalLM", ReadDeepseek},
    Adapter{"DeepseekV32ForCausalLM", ReadDeepseek},
    Adapter{"DeepseekV3ForCausalLM", ReadDeepseek},
    Adapter{"DeepseekV4ForCausalLM", ReadDeepseekV4},
    Adapter{"DominoDraftModel", ReadDomino},
    Adapter{"Dots1ForCausalLM", ReadGlm4Moe},
    Adapter{"Eagle3LlamaForCausalLM", ReadEagle3},
    Adapter{"EagleDeepSeekMTPModel", ReadEagleDeepseek},
    Adapter{"EagleLlamaForCausalLM", ReadEagle},
    Adapter{"Ernie4_5ForCausalLM", ReadLlama},
    Adapter{"Ernie4_5_MoeForCausalLM", ReadErnieMoe},
    Adapter{"Exaone4ForCausalLM", ReadOlmo3},
    Adapter{"FalconForCausalLM", ReadFalcon},
    Adapter{"FalconH1ForCausalLM", ReadFalconH1},
    Adapter{"FalconMambaForCausalLM", ReadMamba},
    Adapter{"Gemma2ForCausalLM", ReadGemma2},
    Adapter{"Gemma3ForCausalLM", ReadGemma3},
    Adapter{"Gemma3ForConditionalGeneration", ReadGemma3, TextPlace::kWrapped},
    Adapter{"Gemma3nForCausalLM", ReadGemma3n},
    Adapter{"Gemma3nForConditionalGeneration", ReadGemma3n, TextPlace::kWrapped},
    Adapter{"Gemma4ForCausalLM", ReadGemma4},
    Adapter{"Gemma4ForConditionalGeneration", ReadGemma4, TextPlace::kWrapped},
    Adapter{"Glm4MoeForCausalLM", ReadGlm4Moe},
    Adapter{"Glm4vMoeForConditionalGeneration", ReadGlm4Moe, TextPlace::kWrapped},
    Adapter{"GlmMoeDsaForCausalLM", ReadDeepseek},
    Adapter{"GptOssForCausalLM", ReadGptOss},
    Adapter{"GraniteForCausalLM", ReadLlama},
    Adapter{"GraniteMoeHybridForCausalLM", ReadGraniteHybrid},
    Adapter{"HunYuanDenseV1ForCausalLM", ReadLlama},
    Adapter{"InternLM3ForCausalLM", ReadLlama},
    Adapter{"JambaForCausalLM", ReadJamba},
    Adapter{"K3DSparkModel", ReadK3Dspark},
    Adapter{"KimiK25ForConditionalGeneration", ReadDeepseek, TextPlace::kWrapped},
    Adapter{"KimiK3ForConditionalGeneration", ReadKimiLinear, TextPlace::kWrapped},
    Adapter{"KimiLinearForCausalLM", ReadKimiLinear},
    Adapter{"Lfm2ForCausalLM", ReadLfm2},
    Adapter{"Lfm2MoeForCausalLM", ReadLfm2},
    Adapter{"Llama4ForCausalLM", ReadLlama4},
    Adapter{"Llama4ForConditionalGeneration", ReadLlama4, TextPlace::kWrapped},
    Adapter{"LlamaForCausalLM", ReadLlama},
    Adapter{"LlamaForCausalLMEagle", ReadEagle},
    Adapter{"LlamaForCausalLMEagle3", ReadEagle3},
    Adapter{"LlavaForConditionalGeneration", ReadLlama, TextPlace::kWrapped},
    Adapter{"LongcatFlashForCausalLM", ReadLongcat},
    Adapter{"MPTForCausalLM", ReadMpt},
    Adapter{"Mamba2ForCausalLM", ReadMamba2Model},
    Adapter{"MambaForCausalLM", ReadMamba},
    Adapter{"MiMoForCausalLM", ReadLlama},
    Adapter{"MiMoV2FlashForCausalLM", ReadMimoV2},
    Adapter{"MiniCPM3ForCausalLM", ReadMinicpm3},
    Adapter{"MiniMaxM1ForCausalLM", ReadMinimaxText01},
    Adapter{"MiniMaxM2ForCausalLM", ReadMixtral},
    Adapter{"MiniMaxM3ForCausalLM", ReadMinimaxM3},
    Adapter{"MiniMaxM3SparseForCausalLM", ReadMinimaxM3},
    Adapter{"MiniMaxM3SparseForConditionalGeneration", ReadMinimaxM3, TextPlace::kWrapped},
    Adapter{"MiniMaxText01ForCausalLM", ReadMinimaxText01},
    Adapter{"Ministral3ForCausalLM", ReadLlama},
    Adapter{"Mistral3ForConditionalGeneration", ReadLlama, TextPlace::kWrapped},
    Adapter{"MistralForCausalLM", ReadLlama},
    Adapter{"MixtralForCausalLM", ReadMixtral},
    Adapter{"MptForCausalLM", ReadMpt},
    Adapter{"NemotronHForCausalLM", ReadNemotronH},
    Adapter{"Olmo2ForCausalLM", ReadLlama},
    Adapter{"Olmo3ForCausalLM", ReadOlmo3},
    Adapter{"PEagleDraftModel", ReadPeagle},
    Adapter{"Phi3ForCausalLM", ReadLlama},
    Adapter{"Qwen2ForCausalLM", ReadQwen},
    Adapter{"Qwen2MoeForCausalLM", ReadQwenMoe},
    Adapter{"Qwen2VLForConditionalGeneration", ReadQwen, TextPlace::kEither},
    Adapter{"Qwen2_5_VLForConditionalGeneration", ReadQwen, TextPlace::kEither},
    Adapter{"Qwen3DSparkModel", ReadDspark},
    Adapter{"Qwen3ForCausalLM", ReadQwen},
    Adapter{"Qwen3MoeForCausalLM", ReadQwenMoe},
    Adapter{"Qwen3NextForCausalLM", ReadQwen3Next},
    Adapter{"Qwen3VLForConditionalGeneration", ReadQwen, TextPlace::kWrapped},
    Adapter{"Qwen3VLMoeForConditionalGeneration", ReadQwenMoe, TextPlace::kWrapped},
    Adapter{"Qwen3_5ForCausalLM", ReadQwen3Next},
    Adapter{"Qwen3_5ForConditionalGeneration", ReadQwen3Next, TextPlace::kWrapped},
    Adapter{"Qwen3_5MoeForCausalLM", ReadQwen3Next},
    Adapter{"Qwen3_5MoeForConditionalGeneration", ReadQwen3Next, TextPlace::kWrapped},
    Adapter{"QwenDFlareDraftModel", ReadDflare},
    Adapter{"QwenDFlashDraftModel", ReadDflash},
    Adapter{"RWForCausalLM", ReadFalcon},
    Adapter{"RobertaModel", ReadBert},
    Adapter{"SeedOssForCausalLM", ReadLlama},
    Adapter{"SmolLM3ForCausalLM", ReadLlama},
    Adapter{"Step3p5ForCausalLM", ReadStep3p5},
    Adapter{"Step3p7FlashForCausalLM", ReadStep3p5},
    Adapter{"WhisperForConditionalGeneration", ReadWhisper},
    Adapter{"XLMRobertaModel", ReadBert},
    Adapter{"Zamba2ForCausalLM", ReadZamba2},
};

// The form of vllm-project/speculators; its architectures differ from tool to tool.
constexpr Adapter kSpeculators{"speculators", ReadSpeculators};

// The names that are nearest to an unknown one.
std::string NearestArchitectures(const std::string& name) {
  std::vector<std::pair<std::size_t, std::string_view>> near;
  near.reserve(kAdapters.size());
  for (const Adapter& adapter : kAdapters)
    near.emplace_back(EditDistance(name, adapter.architecture), adapter.architecture);
  std::sort(near.begin(), near.end());
  return absl::StrFormat("%s, %s, %s", near[0].second, near[1].second, near[2].second);
}

const Adapter* FindAdapter(const std::string& architecture) {
  for (const Adapter& adapter : kAdapters) {
    if (architecture == adapter.architecture) return &adapter;
  }
  return nullptr;
}

// The object that holds a wrapped text model, if there is one.
std::optional<ConfigObject> FindText(const ConfigObject& root) {
  if (const auto thinker = root.ObjectIf("thinker_config")) return thinker->ObjectIf("text_config");
  return root.ObjectIf(root.FirstOf({"text_config", "llm_config", "language_config"}));
}

// The adapter of the document's architecture; of a wrapper that is not known, that of the text model inside.
const Adapter* ChooseAdapter(const ConfigObject& root) {
  if (root.Has("speculators_model_type")) return &kSpeculators;
  const std::vector<std::string> names = root.TextList("architectures");
  if (!root.ok()) return nullptr;
  const std::string name = names.empty() ? "" : names.front();
  const Adapter* adapter = FindAdapter(name);
  if (adapter != nullptr) return adapter;
  if (const auto text = FindText(root); text.has_value() && text->Has("architectures")) {
    const std::vector<std::string> inner = text->TextList("architectures");
    if (!inner.empty()) adapter = FindAdapter(inner.front());
    if (adapter != nullptr) return adapter;
  }
  root.FailValue(
      ConfigFault::kUnknownArchitecture, "architectures", name.empty() ? "[]" : name,
      absl::StrFormat("not one of the %d architectures that are read (docs/formats/model_text.md); "
                      "nearest: %s",
                      kAdapters.size(), NearestArchitectures(name.substr(0, 64))));
  return nullptr;
}

// Both spellings may stand in a file; they must then agree. A file without either is taken as bf16, which is
// what engines make of one.
DType ReadDType(const ConfigObject& config) {
  constexpr std::array kNames = {std::pair{std::string_view("bfloat16"), DType::kBf16},
                                 std::pair{std::string_view("float16"), DType::kF16},
                                 std::pair{std::string_view("float32"), DType::kF32}};
  const std::string_view field = config.FirstOf({"dtype", "torch_dtype"});
  const std::string name = config.TextOr(field, "bfloat16");
  if (field == "dtype" && config.Has("torch_dtype") && config.TextOr("torch_dtype", "") != name) {
    config.Fail(ConfigFault::kContradiction, "torch_dtype",
                absl::StrFormat("dtype says %s; remove one of the two", name));
  }
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  config.Fail(ConfigFault::kOutOfLimit, field, "expected bfloat16, float16 or float32");
  return DType::kBf16;
}

// What every family spells alike; in a wrapper each may stand inside or outside.
void ReadShared(const ConfigObject& root, const ConfigObject& text, ModelDescription& model) {
  const auto holder = [&](std::initializer_list<std::string_view> fields) -> const ConfigObject& {
    return text.Has(text.FirstOf(fields)) ? text : root;
  };
  model.dtype = ReadDType(holder({"dtype", "torch_dtype"}));
  model.tied_embedding = holder({"tie_word_embeddings"}).BoolOr("tie_word_embeddings", model.tied_embedding);
  const std::string_view field = "quantization_config";
  if (const auto quantisation = holder({field}).ObjectIf(field)) {
    model.quantisation = ReadQuantisation(text, *quantisation, model.layers);
  }
}

void Read(const ConfigObject& root, ModelDescription& model) {
  const Adapter* adapter = ChooseAdapter(root);
  if (adapter == nullptr) return;
  std::optional<ConfigObject> text = FindText(root);
  std::vector<std::string> names;
  if (adapter != &kSpeculators || root.Has("architectures")) names = root.TextList("architectures");
  const bool wrapped =
      adapter != &kSpeculators &&
      (adapter->place == TextPlace::kWrapped || names.empty() || names.front() != adapter->architecture ||
       (adapter->place == TextPlace::kEither && text.has_value()));
  if (wrapped && !text.has_value()) text = root.Object("text_config");
  if (!root.ok()) return;
  model.architecture = names.empty() ? std::string(adapter->architecture) : names.front();
  model.multimodal = wrapped || adapter->place == TextPlace::kEither;
  const ConfigObject& fields = wrapped ? *text : root;
  adapter->read(fields, model);
  if (root.ok()) ReadShared(root, fields, model);
}

}  // namespace

std::span<const Adapter> Adapters() { return kAdapters; }

absl::StatusOr<ModelDescription> ReadConfigJson(std::string_view json, std::string_view name) {
  if (!IsModelName(name)) {
    return ToStatus({ConfigFault::kOutOfLimit, "name", std::string(name.substr(0, 64)),
                     "expected 1 to 256 letters, digits or ._/+:@-"},
                    "model");
  }
  KVASIR_ASSIGN_OR_RETURN(const nlohmann::json document, ParseConfigText(json, name));
  std::optional<ConfigError> error;
  ModelDescription model;
  model.name = name;
  Read(ConfigObject(document, "", error), model);
  if (!error.has_value()) error = FindModelFault(model);
  if (error.has_value()) return ToStatus(*error, name);
  return model;
}

}  // namespace kvasir
