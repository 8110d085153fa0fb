// One adapter per model family: how its config.json spells layers, dims and rope. To add a family, write one
// file and one line of the table in read_config.cc.
#ifndef KVASIR_COMMON_MODELS_ADAPTERS_H_
#define KVASIR_COMMON_MODELS_ADAPTERS_H_

#include <span>
#include <string_view>

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

// Fills `model` (name and architecture are set already) from the object that holds the text model's fields.
// Faults go to the object; limits that the reads do not state are checked afterwards (check_model.h).
using AdapterRead = void (*)(const ConfigObject& config, ModelDescription& model);

struct Adapter {
  std::string_view architecture;  // as in `architectures`
  AdapterRead read;
  bool in_text_config;  // a multimodal wrapper: the fields lie in `text_config`
};

// By architecture.
[[nodiscard]] std::span<const Adapter> Adapters();

void ReadDeepseek(const ConfigObject& config, ModelDescription& model);    // adapter_deepseek.cc
void ReadK3Dspark(const ConfigObject& config, ModelDescription& model);    // adapter_k3_dspark.cc
void ReadKimiLinear(const ConfigObject& config, ModelDescription& model);  // adapter_kimi_linear.cc
void ReadLlama(const ConfigObject& config, ModelDescription& model);       // adapter_llama.cc
void ReadNemotronH(const ConfigObject& config, ModelDescription& model);   // adapter_nemotron_h.cc

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_ADAPTERS_H_
