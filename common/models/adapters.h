// One adapter per model family: how its config.json spells layers, dims and rope. To add a family, write one
// file and one line of the table in read_config.cc.
#ifndef KVASIR_COMMON_MODELS_ADAPTERS_H_
#define KVASIR_COMMON_MODELS_ADAPTERS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

// Fills `model` (name and architecture are set already) from the object that holds the text model's fields;
// dtype, tied embeddings and quantisation are read afterwards, for all families alike. Faults go to the
// object; limits that the reads do not state are checked last (check_model.h).
using AdapterRead = void (*)(const ConfigObject& config, ModelDescription& model);

// Where the fields lie: in the document itself, or in `text_config` (or another name for it) of a multimodal
// wrapper, which kEither architectures have in some files and not in others.
enum class TextPlace : std::int8_t { kRoot, kWrapped, kEither };

struct Adapter {
  std::string_view architecture;  // as in `architectures`
  AdapterRead read;
  TextPlace place = TextPlace::kRoot;
};

// By architecture. A file that names speculators_model_type is read by ReadSpeculators whatever it names.
[[nodiscard]] std::span<const Adapter> Adapters();

void ReadBart(const ConfigObject& config, ModelDescription& model);           // adapter_bart.cc
void ReadBert(const ConfigObject& config, ModelDescription& model);           // adapter_bert.cc
void ReadCohere(const ConfigObject& config, ModelDescription& model);         // adapter_cohere.cc
void ReadCohere2(const ConfigObject& config, ModelDescription& model);        // adapter_cohere.cc
void ReadDbrx(const ConfigObject& config, ModelDescription& model);           // adapter_dbrx.cc
void ReadDeepseek(const ConfigObject& config, ModelDescription& model);       // adapter_deepseek.cc
void ReadDeepseekV4(const ConfigObject& config, ModelDescription& model);     // adapter_deepseek_v4.cc
void ReadDflare(const ConfigObject& config, ModelDescription& model);         // adapter_dflash.cc
void ReadDflash(const ConfigObject& config, ModelDescription& model);         // adapter_dflash.cc
void ReadDomino(const ConfigObject& config, ModelDescription& model);         // adapter_dflash.cc
void ReadDspark(const ConfigObject& config, ModelDescription& model);         // adapter_dflash.cc
void ReadEagle(const ConfigObject& config, ModelDescription& model);          // adapter_eagle.cc
void ReadEagle3(const ConfigObject& config, ModelDescription& model);         // adapter_eagle.cc
void ReadEagleDeepseek(const ConfigObject& config, ModelDescription& model);  // adapter_eagle.cc
void ReadErnieMoe(const ConfigObject& config, ModelDescription& model);       // adapter_ernie.cc
void ReadFalcon(const ConfigObject& config, ModelDescription& model);         // adapter_falcon.cc
void ReadFalconH1(const ConfigObject& config, ModelDescription& model);       // adapter_falcon_h1.cc
void ReadGemma2(const ConfigObject& config, ModelDescription& model);         // adapter_gemma.cc
void ReadGemma3(const ConfigObject& config, ModelDescription& model);         // adapter_gemma.cc
void ReadGemma3n(const ConfigObject& config, ModelDescription& model);        // adapter_gemma3n.cc
void ReadGemma4(const ConfigObject& config, ModelDescription& model);         // adapter_gemma4.cc
void ReadGlm4Moe(const ConfigObject& config, ModelDescription& model);        // adapter_glm4_moe.cc
void ReadGptOss(const ConfigObject& config, ModelDescription& model);         // adapter_gpt_oss.cc
void ReadGraniteHybrid(const ConfigObject& config, ModelDescription& model);  // adapter_granite_hybrid.cc
void ReadJamba(const ConfigObject& config, ModelDescription& model);          // adapter_jamba.cc
void ReadK3Dspark(const ConfigObject& config, ModelDescription& model);       // adapter_k3_dspark.cc
void ReadKimiLinear(const ConfigObject& config, ModelDescription& model);     // adapter_kimi_linear.cc
void ReadLfm2(const ConfigObject& config, ModelDescription& model);           // adapter_lfm2.cc
void ReadLlama(const ConfigObject& config, ModelDescription& model);          // adapter_llama.cc
void ReadLlama4(const ConfigObject& config, ModelDescription& model);         // adapter_llama4.cc
void ReadLongcat(const ConfigObject& config, ModelDescription& model);        // adapter_longcat.cc
void ReadMamba(const ConfigObject& config, ModelDescription& model);          // adapter_mamba.cc
void ReadMamba2Model(const ConfigObject& config, ModelDescription& model);    // adapter_mamba.cc
void ReadMimoV2(const ConfigObject& config, ModelDescription& model);         // adapter_mimo_v2.cc
void ReadMinicpm3(const ConfigObject& config, ModelDescription& model);       // adapter_minicpm3.cc
void ReadMinimaxM3(const ConfigObject& config, ModelDescription& model);      // adapter_minimax.cc
void ReadMinimaxText01(const ConfigObject& config, ModelDescription& model);  // adapter_minimax.cc
void ReadMixtral(const ConfigObject& config, ModelDescription& model);        // adapter_mixtral.cc
void ReadMpt(const ConfigObject& config, ModelDescription& model);            // adapter_mpt.cc
void ReadNemotronH(const ConfigObject& config, ModelDescription& model);      // adapter_nemotron_h.cc
void ReadNemotronNas(const ConfigObject& config, ModelDescription& model);    // adapter_nemotron_nas.cc
void ReadOlmo3(const ConfigObject& config, ModelDescription& model);          // adapter_olmo3.cc
void ReadPeagle(const ConfigObject& config, ModelDescription& model);         // adapter_dflash.cc
void ReadQwen(const ConfigObject& config, ModelDescription& model);           // adapter_qwen.cc
void ReadQwen3Next(const ConfigObject& config, ModelDescription& model);      // adapter_qwen3_next.cc
void ReadQwenMoe(const ConfigObject& config, ModelDescription& model);        // adapter_qwen.cc
void ReadSpeculators(const ConfigObject& config, ModelDescription& model);    // adapter_speculators.cc
void ReadStep3p5(const ConfigObject& config, ModelDescription& model);        // adapter_step3p5.cc
void ReadWhisper(const ConfigObject& config, ModelDescription& model);        // adapter_bart.cc
void ReadZamba2(const ConfigObject& config, ModelDescription& model);         // adapter_zamba2.cc

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_ADAPTERS_H_
