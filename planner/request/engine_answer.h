// What the engine will do with a launch on a given memory: the plan, the capacity, and the lines that its log
// will have. With a range of memory the figures are a range too.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_ANSWER_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request/engine_capacity.h"
#include "planner/request/engine_specs.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir {

// Of one worker; no request is too long for it.
inline constexpr std::int64_t kAmpleBytes = std::int64_t{1} << 46;

// kFails: the engine raises for another reason than memory.
enum class EngineVerdict : std::int8_t { kFits, kDoesNotFit, kFails };

struct EngineAnswer {
  vllm::EngineCase engine_case;
  vllm::EnginePlan plan;  // on the least memory
  EngineVerdict verdict = EngineVerdict::kFails;
  bool fits_most = false;  // kDoesNotFit: it would on the most memory
  std::optional<CapacityRule> rule;
  PrintedCapacity least;  // valid with a rule
  PrintedCapacity most;
  bool exact = true;                   // one memory, no range
  std::vector<std::string> log_lines;  // as the engine prints them; with a range, both ends in one line

  // Of the worker that is shortest of memory.
  [[nodiscard]] std::int64_t needed_bytes() const;
  [[nodiscard]] std::int64_t given_bytes() const;
  // Of max_model_len at a time, on the least memory, without block 0, which is never given out; 0 unless
  // kFits.
  [[nodiscard]] std::int64_t usable_requests() const;
  [[nodiscard]] std::int64_t longest_tokens() const;  // 0: none
  // Layers that groups of one size are filled up with, and the layers of the groups that need it.
  [[nodiscard]] std::int64_t padding_layers() const;
  [[nodiscard]] std::int64_t padded_layers() const;
};

// `before`: lines that the engine logs before it plans. `most`: the same case on more memory, if that is a
// range.
[[nodiscard]] EngineAnswer AnswerOf(vllm::EngineCase engine_case, EngineRelease release,
                                    std::vector<std::string> before, std::optional<std::int64_t> most_bytes);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_ANSWER_H_
