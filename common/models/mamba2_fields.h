// The Mamba-2 fields of Zamba2, Falcon-H1, Granite-4-H and Bamba, which spell them alike.
#ifndef KVASIR_COMMON_MODELS_MAMBA2_FIELDS_H_
#define KVASIR_COMMON_MODELS_MAMBA2_FIELDS_H_

#include <cstdint>
#include <string_view>

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

struct Mamba2Fields {
  std::string_view heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";
  std::string_view state_dim = "mamba_d_state";
  std::string_view groups = "mamba_n_groups";
  std::string_view conv_kernel = "mamba_d_conv";
};

// `inner` is heads * head_dim; a file that says otherwise is a contradiction. An absent (or "auto") head_dim
// follows from it. The recurrent state has the convolution's dtype, and drafted tokens add no rows: these
// models' code passes no draft length on.
[[nodiscard]] Mamba2Shape ReadMamba2(const ConfigObject& config, const Mamba2Fields& fields,
                                     std::int64_t inner);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MAMBA2_FIELDS_H_
