// What the engine vLLM would admit of a question in each layout that it has, beside our own plan.
#ifndef KVASIR_PLANNER_QUESTIONS_ENGINE_MODES_H_
#define KVASIR_PLANNER_QUESTIONS_ENGINE_MODES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/questions/plan_question.h"

namespace kvasir {

enum class EngineMode : std::int8_t {
  kMerged,      // as it groups by itself: layers of target and draft together where it can
  kApart,       // the draft's latent caches kept from the target's groups
  kRecoverSsm,  // as kMerged, with one recurrent state and a buffer of inputs instead of snapshots
};
// merged | apart | recover_ssm
[[nodiscard]] std::string_view EngineModeName(EngineMode mode);

struct EngineCount {
  EngineMode mode = EngineMode::kMerged;
  // Of the length, at a time; its block 0, which it never gives out, is not counted. 0: not even one.
  std::int64_t requests = 0;
  std::int64_t bytes_per_request = 0;  // of a rank
};

// One length. Modes that the question does not have, or that the engine fails in, are absent.
struct EngineCounts {
  std::int64_t context_tokens = 0;
  std::vector<EngineCount> counts = {};  // by mode
};

struct EngineComparison {
  std::vector<EngineCounts> lengths = {};  // as asked; empty: see why_none
  std::string why_none = {};
};

// The engine's launch of the question as our own plan has it: without lookahead or a prefix cache, with
// snapshots, with its own kernels and its own place for a draft's cache. FailedPrecondition where it divides
// a draft's heads and then its tokens over the same ranks: it keeps one part in dcp of that cache, and cannot
// decode from it. InvalidArgument where it refuses the options.
[[nodiscard]] absl::StatusOr<EngineLaunch> LaunchBeside(const PlanQuestion& question,
                                                        vllm::EngineVersion version);

// The question as our own plan has it: its memory, and LaunchBeside. Nothing is counted where there is none.
// Lengths after which `go_on` said no are absent.
[[nodiscard]] EngineComparison CountUnderEngine(const PlanQuestion& question, vllm::EngineVersion version,
                                                std::span<const std::int64_t> contexts,
                                                const GoOn& go_on = {});

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_ENGINE_MODES_H_
