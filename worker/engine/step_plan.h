// What rank 0 tells every rank to do next, and what comes of it. Rank 0 alone schedules and allocates blocks;
// the others execute exactly this and refuse anything else, so ranks cannot drift apart.
#ifndef KVASIR_WORKER_ENGINE_STEP_PLAN_H_
#define KVASIR_WORKER_ENGINE_STEP_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "worker/engine/parent_move.h"
#include "worker/engine/sampling_parameters.h"
#include "worker/engine/step_cost.h"

namespace kvasir {

// Raised when the same StepPlan comes to mean another step: ranks of one plan must agree on it.
inline constexpr int kStepVersion = 4;

enum class StepKind : std::int8_t {
  kPrefill,    // target_prefill of one chunk of one sequence, then draft_context of the same rows
  kDecode,     // target_decode: one row per sequence, no draft
  kSpeculate,  // draft_block, target_verify, acceptance, draft_context
};

// One sequence's part of a step. `committed` is T of DESIGN section 3: tokens whose target K/V is in the
// cache.
struct StepSequence {
  SequenceId id;
  std::int64_t committed = 0;
  std::int64_t limit = 0;                 // prompt + max_tokens; rows at positions >= limit are padding
  std::vector<std::int32_t> tokens = {};  // kPrefill: the chunk's tokens; else one: the anchor at `committed`
  bool last_chunk = false;                // kPrefill: the chunk ends the prompt, so its last row is sampled
  // Rollback by replay: the accepted drafts of the step before, the last committed tokens, which the state
  // has not taken in: the ring's rows 0 .. are theirs. 0 under any other rollback, and after a prefill.
  std::int64_t pending = 0;
  // Its place among the plan's max_requests, its own while it runs. What a rank keeps of a sequence outside
  // the arena (the state that a chain draft starts from) stands there.
  std::int64_t seat = 0;
  std::vector<std::vector<BlockId>> blocks = {};  // [pool][column]: the sequence's block table
  SamplingParameters sampling = {};
};

struct StepPlan {
  Epoch epoch;
  std::string plan_id = {};
  std::int64_t step = 0;  // 0, 1, 2, ... within an epoch; a follower refuses a gap
  StepKind kind = StepKind::kDecode;
  std::vector<ParentId> zero_parents = {};  // that changed their pool since the last step
  // After the zeroing and before all else: these blocks are copied. The tables of `sequences` name the
  // targets.
  std::optional<ParentMove> move = {};
  std::vector<StepSequence> sequences = {};
  StepCost cost = {};  // kSpeculate: what rows cost, for choosing how many drafted tokens are verified
};

struct SequenceOutcome {
  SequenceId id;
  std::int64_t drafted = 0;  // valid draft rows verified
  std::int64_t accepted = 0;
  std::vector<std::int32_t> emitted = {};  // accepted drafts, then the target's own token
  std::vector<float> logprobs = {};        // of `emitted`, where the sequence wants them; else empty
};

// The same on every rank.
struct StepOutcome {
  std::int64_t step = 0;
  std::vector<SequenceOutcome> sequences = {};  // in the order of the StepPlan
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_STEP_PLAN_H_
