// The metadata of one pass: which token, position, slot, bound and page each row has. Built from the step and
// from each group's own BehaviourKey; causality comes from that key alone, never from the pool, the layout or
// another group, and no two groups ever share a GroupMetadata.
//
// Replay contract (DESIGN section 3): every entry up to the padded shape is written each time. A padded row
// has token 0, position 0, slot -1, bound 0 and draw 0; a padded request's table is block 0, the null block,
// and its temperature 0. Of a chain draft it carries no state on, and starts from that of the pass's first
// sequence.
//
// Recurrent groups. A sequence has `copies` copies of its state (the pool's lifetime): the state that has
// taken in t tokens stands in copy t mod copies. So a verify of N + 1 rows over 1 + N copies leaves the state
// after each of its rows, the next pass reads the copy of the tokens that were accepted, and rolling back is
// moving the cursor. With one copy and replay a decoding pass first takes in the `pending` rows of the pass
// before, the drafts that were accepted, and leaves the state after its own first row: the anchor is
// committed whatever becomes of its drafts.
#ifndef KVASIR_WORKER_ENGINE_STEP_METADATA_H_
#define KVASIR_WORKER_ENGINE_STEP_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/geometry/context_shard.h"
#include "common/plan/plan.h"
#include "worker/engine/pass.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

struct GroupMetadata {
  GroupId group;
  BehaviourKey behaviour;
  std::int64_t table_width = 0;
  std::vector<std::int64_t> block_table = {};  // [requests, table_width]
  // [rows]; this rank's slot, or -1. Recurrent: the copy that keeps the state after the row, or -1.
  std::vector<std::int64_t> slots = {};
  // [rows]; this rank's tokens that the row sees. Recurrent: tokens in the state after the row.
  std::vector<std::int64_t> bounds = {};
  // Recurrent groups only, [requests].
  std::vector<std::int64_t> reads = {};    // the copy that the first row starts from; -1: an empty state
  std::vector<std::int64_t> replays = {};  // rows of the ring that are taken in before the first row
};

struct PassMetadata {
  PassShape shape;
  std::vector<std::int32_t> token_ids = {};  // [rows]
  std::vector<std::int64_t> positions = {};  // [rows]
  std::vector<std::int32_t> anchors = {};    // [requests]
  std::vector<double> temperatures = {};     // [requests]; draft_block only
  std::vector<double> draws = {};            // [rows]; draft_block only
  // Chain drafts only (DraftShape::IsChain): which state a row starts from, as an index into the carried
  // states, one a seat, and the states of the target's last pass behind them. draft_context [rows];
  // draft_block [requests].
  std::vector<std::int32_t> previous = {};
  // draft_context of a chain draft, [rows]: the seat that the target's state of this row is carried in, or
  // -1.
  std::vector<std::int64_t> carried = {};
  std::vector<GroupMetadata> groups = {};  // of the pass's role, by GroupId
};

// What one sequence does in a pass: query rows at start, start + 1, ..., one per token.
struct SequenceRows {
  const StepSequence* sequence = nullptr;
  std::int64_t start = 0;                 // position of the first row; -1: that row is padding
  std::vector<std::int32_t> tokens = {};  // of the valid rows; at most the pass's query_rows
  bool attends = true;                    // false: draft_context, which writes K/V and sees nothing
  std::int32_t anchor = 0;
  double temperature = 0;          // draft_block: that tokens are drafted at
  std::vector<double> draws = {};  // draft_block: one for each token, where temperature > 0
};

// The rows of each kind of pass, per DESIGN section 3 ("Draft bookkeeping"). Positions >= limit get no row.
// target_prefill and its draft_context: the chunk at `committed`.
[[nodiscard]] SequenceRows RowsOfPrefill(const StepSequence& sequence);
// target_decode: the anchor at T.
[[nodiscard]] SequenceRows RowsOfDecode(const StepSequence& sequence);
// draft_block: the anchor at T, then masks, so that min(N, limit - 1 - T) rows predict, one for each token
// that the target can still be asked about. A sampling request drafts at its own temperature, without top_k
// and top_p.
[[nodiscard]] SequenceRows RowsOfDraftBlock(const Plan& plan, const StepSequence& sequence,
                                            std::int32_t mask_token);
// target_verify: the anchor at T and the drafted tokens after it.
[[nodiscard]] SequenceRows RowsOfVerify(const StepSequence& sequence, std::span<const std::int32_t> drafted);
// draft_context after a verify: the anchor and the accepted tokens, T .. T + accepted.
[[nodiscard]] SequenceRows RowsOfContext(const StepSequence& sequence, std::int64_t accepted);

// A chain draft joins a token with the state of the position before, and keeps that row there: its rows stand
// one position earlier, and the first token of a sequence has none. draft_block: the anchor, then rows whose
// tokens are those drafted before them.
[[nodiscard]] SequenceRows RowsOfChainBlock(const Plan& plan, const StepSequence& sequence);
// draft_context after a target pass over `tokens` from `committed` on.
[[nodiscard]] SequenceRows RowsOfChainContext(const StepSequence& sequence,
                                              std::span<const std::int32_t> tokens);

// Valid drafted tokens of a sequence: min(N, limit - 1 - T).
[[nodiscard]] std::int64_t DraftedTokens(const StepSequence& sequence, std::int64_t draft_tokens);

[[nodiscard]] Role RoleOf(Pass pass);

class MetadataBuilder {
 public:
  // `unused_entry` stands in the table columns of a valid request that none of its rows may look at. Tests
  // set it to an absurd id to prove that no operation does. `chain`: the plan's draft is a chain draft.
  explicit MetadataBuilder(const Plan& plan, const RankPlace& place, std::int64_t unused_entry = 0,
                           bool chain = false);

  // `rows[i]` becomes request i; rows.size() <= shape.requests, and no more tokens than shape.query_rows each
  // (our own callers' duty). Block ids are copied as they stand: CheckStep has seen them.
  [[nodiscard]] PassMetadata Build(const PassShape& shape, const std::vector<SequenceRows>& rows) const;

 private:
  struct GroupPlace {
    GroupId group;
    BehaviourKey behaviour;
    std::size_t pool = 0;
    std::int64_t table_width = 0;
    // Attention.
    std::int64_t block_tokens = 1;
    std::int64_t column_tokens = 1;
    ContextShard shard;
    // Recurrent.
    std::int64_t copies = 0;
    std::int64_t parts = 1;
    bool replays = false;  // rolls back by replay
  };
  [[nodiscard]] GroupMetadata BuildGroup(const GroupPlace& place, const PassShape& shape,
                                         const std::vector<SequenceRows>& rows) const;
  void FillAttention(const GroupPlace& place, const PassShape& shape, std::int64_t request,
                     const SequenceRows& rows, GroupMetadata& out) const;
  void FillRecurrent(const GroupPlace& place, const PassShape& shape, std::int64_t request,
                     const SequenceRows& rows, GroupMetadata& out) const;

  void FillChain(const PassShape& shape, const std::vector<SequenceRows>& rows, PassMetadata& out) const;

  std::vector<GroupPlace> groups_;  // by GroupId
  std::int64_t seats_;
  bool chain_;
  std::int64_t unused_entry_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_STEP_METADATA_H_
