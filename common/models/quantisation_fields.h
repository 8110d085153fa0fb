// How the weights of a checkpoint are stored, from the many forms of quantization_config.
#ifndef KVASIR_COMMON_MODELS_QUANTISATION_FIELDS_H_
#define KVASIR_COMMON_MODELS_QUANTISATION_FIELDS_H_

#include <vector>

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

// `config` holds the text model's fields, `quantisation` is its quantization_config; `layers` are the
// model's. Files name modules one by one, or by patterns; a class of weights (say, attention) counts
// as left out where that holds for at least half of the layers. A method that is not known here keeps its
// name and gives no sizes.
[[nodiscard]] WeightQuantisation ReadQuantisation(const ConfigObject& config,
                                                  const ConfigObject& quantisation,
                                                  const std::vector<ModelLayer>& layers);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_QUANTISATION_FIELDS_H_
