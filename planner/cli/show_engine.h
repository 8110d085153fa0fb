// What a person sees of the engine's answer, and its machine form (docs/formats/plan_json.md, member `vllm`).
#ifndef KVASIR_PLANNER_CLI_SHOW_ENGINE_H_
#define KVASIR_PLANNER_CLI_SHOW_ENGINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/cli/console.h"
#include "planner/cli/engine_ask.h"
#include "planner/request/engine_answer.h"

namespace kvasir::cli {

void ShowEngine(const Console& console, const EngineAsk& ask, const EngineAnswer& answer);
// The engine refuses the options before it plans.
void ShowEngineRefusal(const Console& console, const EngineAsk& ask, const absl::Status& status);
// The verdict of `validate` alone: no sizes. `answer` is of ample memory.
void ShowEngineVerdict(const Console& console, const EngineAsk& ask, const EngineAnswer& answer);

// Schema kvasir.plan/1.
[[nodiscard]] std::string EngineJson(const EngineAsk& ask, const EngineAnswer& answer);
[[nodiscard]] std::string EngineRefusalJson(const EngineAsk& ask, const absl::Status& status);
// Schema kvasir.validate/1; `refusal` is OK where the engine planned (`answer`).
[[nodiscard]] std::string EngineVerdictJson(const EngineAsk& ask, const absl::Status& refusal,
                                            const EngineAnswer* answer);
// Changes with which the engine would take the launch; empty for explicit specs.
[[nodiscard]] std::vector<std::string> AcceptedInsteadOf(const EngineAsk& ask);

// "MLA", "KDA states (mamba)": one group's kind in words.
[[nodiscard]] std::string GroupKindText(const EngineAnswer& answer, const vllm::EngineGroup& group);
// Bytes of one block of one of the group's layers; of a wrapper, of all its layers.
[[nodiscard]] std::int64_t GroupPageBytes(const EngineAnswer& answer, const vllm::EngineGroup& group);
[[nodiscard]] std::int64_t GroupBlockTokens(const EngineAnswer& answer, const vllm::EngineGroup& group);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_SHOW_ENGINE_H_
