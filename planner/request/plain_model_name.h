// Names of copies: a quantised or retrained model keeps the caches of what it was made from, and its name
// says so.
#ifndef KVASIR_PLANNER_REQUEST_PLAIN_MODEL_NAME_H_
#define KVASIR_PLANNER_REQUEST_PLAIN_MODEL_NAME_H_

#include <string>
#include <string_view>

namespace kvasir {

// Lower case, without organisation, remarks and words that tell how weights are stored: "GLM-5.1-NVFP4-MTP"
// is "glm-5.1", "meta-llama/Llama-3.1-8B(-Instruct) (inferred)" is "llama-3.1-8b".
[[nodiscard]] std::string PlainModelName(std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_PLAIN_MODEL_NAME_H_
