// Models whose last layers own no cache and read that of an earlier layer (Gemma-3n, Gemma-4).
#ifndef KVASIR_COMMON_MODELS_SHARED_CACHES_H_
#define KVASIR_COMMON_MODELS_SHARED_CACHES_H_

#include <cstdint>

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

// The last num_kv_shared_layers layers each take the cache of the last layer before them that has the same
// window. Gives the index of the first that shares; the number of layers if none does.
std::int64_t ShareLastCaches(const ConfigObject& config, ModelDescription& model);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_SHARED_CACHES_H_
