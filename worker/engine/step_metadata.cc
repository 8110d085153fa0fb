#include "worker/engine/step_metadata.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "worker/engine/arena_layout.h"
#include "worker/engine/random_draw.h"

namespace kvasir {

Role RoleOf(Pass pass) {
  const bool draft = pass == Pass::kDraftContext || pass == Pass::kDraftBlock;
  return draft ? Role::kDraft : Role::kTarget;
}

std::int64_t DraftedTokens(const StepSequence& sequence, std::int64_t draft_tokens) {
  return std::min(draft_tokens, sequence.limit - 1 - sequence.committed);
}

SequenceRows RowsOfPrefill(const StepSequence& sequence) {
  return SequenceRows{.sequence = &sequence, .start = sequence.committed, .tokens = sequence.tokens};
}

SequenceRows RowsOfDecode(const StepSequence& sequence) { return RowsOfPrefill(sequence); }

SequenceRows RowsOfDraftBlock(const Plan& plan, const StepSequence& sequence, std::int32_t mask_token) {
  SequenceRows rows{.sequence = &sequence, .start = sequence.committed};
  const std::int64_t valid = DraftedTokens(sequence, plan.draft_tokens);
  const std::int64_t before = valid > 0 ? DraftBlockRows(plan) - plan.draft_tokens : 0;
  rows.tokens.assign(static_cast<std::size_t>(before + valid), mask_token);
  rows.anchor = sequence.tokens.front();
  if (valid > 0) rows.tokens.front() = rows.anchor;
  rows.temperature = sequence.sampling.temperature;
  if (rows.temperature > 0) rows.draws.assign(static_cast<std::size_t>(before), 0);
  for (std::int64_t k = 0; k < valid && rows.temperature > 0; ++k) {
    rows.draws.push_back(UniformDraw({.seed = sequence.sampling.seed,
                                      .position = sequence.committed,
                                      .purpose = DrawPurpose::kDraft,
                                      .index = static_cast<std::uint32_t>(k)}));
  }
  return rows;
}

SequenceRows RowsOfVerify(const StepSequence& sequence, std::span<const std::int32_t> drafted) {
  SequenceRows rows = RowsOfDecode(sequence);
  rows.tokens.insert(rows.tokens.end(), drafted.begin(), drafted.end());
  return rows;
}

SequenceRows RowsOfContext(const StepSequence& sequence, std::int64_t accepted) {
  SequenceRows rows{.sequence = &sequence, .start = sequence.committed, .attends = false};
  // draft_context reads tapped hidden states, not tokens; one entry per row keeps the count.
  rows.tokens.assign(static_cast<std::size_t>(accepted + 1), 0);
  return rows;
}

SequenceRows RowsOfChainBlock(const Plan& plan, const StepSequence& sequence) {
  SequenceRows rows = RowsOfDraftBlock(plan, sequence, /*mask_token=*/0);
  --rows.start;
  return rows;
}

SequenceRows RowsOfChainContext(const StepSequence& sequence, std::span<const std::int32_t> tokens) {
  return SequenceRows{.sequence = &sequence,
                      .start = sequence.committed - 1,
                      .tokens = std::vector<std::int32_t>(tokens.begin(), tokens.end()),
                      .attends = false};
}

MetadataBuilder::MetadataBuilder(const Plan& plan, const RankPlace& place, std::int64_t unused_entry,
                                 bool chain)
    : seats_(plan.max_requests), chain_(chain), unused_entry_(unused_entry) {
  for (std::size_t pool = 0; pool < plan.pools.size(); ++pool) {
    const PlanPool& its = plan.pools[pool];
    for (const PlanGroup& group : its.groups) {
      groups_.push_back(GroupPlace{.group = group.id,
                                   .behaviour = group.behaviour,
                                   .pool = pool,
                                   .table_width = ColumnsFor(plan, its, plan.context_tokens),
                                   .block_tokens = its.block_tokens,
                                   .column_tokens = ColumnTokens(plan, its),
                                   .shard = ShardOf(its, place),
                                   .copies = its.lifetime.copies,
                                   .parts = its.parts,
                                   .replays = plan.rollback == StateRollback::kReplay});
    }
  }
  std::sort(groups_.begin(), groups_.end(),
            [](const GroupPlace& a, const GroupPlace& b) { return a.group < b.group; });
}

PassMetadata MetadataBuilder::Build(const PassShape& shape, const std::vector<SequenceRows>& rows) const {
  KVASIR_CHECK(static_cast<std::int64_t>(rows.size()) <= shape.requests);
  PassMetadata out;
  out.shape = shape;
  out.token_ids.assign(static_cast<std::size_t>(shape.rows()), 0);
  out.positions.assign(static_cast<std::size_t>(shape.rows()), 0);
  out.anchors.assign(static_cast<std::size_t>(shape.requests), 0);
  if (shape.pass == Pass::kDraftBlock) {
    out.temperatures.assign(static_cast<std::size_t>(shape.requests), 0);
    out.draws.assign(static_cast<std::size_t>(shape.rows()), 0);
  }
  for (std::size_t request = 0; request < rows.size(); ++request) {
    const SequenceRows& its = rows[request];
    KVASIR_CHECK(static_cast<std::int64_t>(its.tokens.size()) <= shape.query_rows);
    out.anchors[request] = its.anchor;
    const std::size_t first = request * static_cast<std::size_t>(shape.query_rows);
    for (std::size_t i = 0; i < its.tokens.size(); ++i) {
      out.token_ids[first + i] = its.tokens[i];
      out.positions[first + i] = std::max<std::int64_t>(0, its.start + static_cast<std::int64_t>(i));
    }
    if (shape.pass != Pass::kDraftBlock) continue;
    out.temperatures[request] = its.temperature;
    std::copy(its.draws.begin(), its.draws.end(), out.draws.begin() + static_cast<std::ptrdiff_t>(first));
  }
  if (chain_ && RoleOf(shape.pass) == Role::kDraft) FillChain(shape, rows, out);
  for (const GroupPlace& place : groups_) {
    if (place.behaviour.role == RoleOf(shape.pass)) out.groups.push_back(BuildGroup(place, shape, rows));
  }
  return out;
}

void MetadataBuilder::FillChain(const PassShape& shape, const std::vector<SequenceRows>& rows,
                                PassMetadata& out) const {
  const bool context = shape.pass == Pass::kDraftContext;
  // Padding starts from a state of the step itself: what a failed sequence left in another seat may be no
  // number, and would fail the step of others.
  const auto padding = static_cast<std::int32_t>(rows.empty() ? 0 : rows.front().sequence->seat);
  out.previous.assign(static_cast<std::size_t>(context ? shape.rows() : shape.requests), padding);
  if (context) out.carried.assign(static_cast<std::size_t>(shape.rows()), -1);
  for (std::size_t request = 0; request < rows.size(); ++request) {
    const std::size_t first = request * static_cast<std::size_t>(shape.query_rows);
    const std::int64_t seat = rows[request].sequence->seat;
    if (!context) {
      out.previous[request] = static_cast<std::int32_t>(seat);
      continue;
    }
    // Row i of the target's pass left the state that row i + 1 starts from, and the last one the next pass.
    const std::size_t valid = rows[request].tokens.size();
    for (std::size_t i = 0; i < valid; ++i) {
      out.previous[first + i] =
          static_cast<std::int32_t>(i == 0 ? seat : seats_ + static_cast<std::int64_t>(first + i) - 1);
    }
    if (valid > 0) out.carried[first + valid - 1] = seat;
  }
}

GroupMetadata MetadataBuilder::BuildGroup(const GroupPlace& place, const PassShape& shape,
                                          const std::vector<SequenceRows>& rows) const {
  GroupMetadata out{.group = place.group, .behaviour = place.behaviour, .table_width = place.table_width};
  out.block_table.assign(static_cast<std::size_t>(shape.requests * place.table_width), 0);
  out.slots.assign(static_cast<std::size_t>(shape.rows()), -1);
  out.bounds.assign(static_cast<std::size_t>(shape.rows()), 0);
  const bool recurrent = place.behaviour.mixer == Mixer::kRecurrent;
  if (recurrent) {
    out.reads.assign(static_cast<std::size_t>(shape.requests), -1);
    out.replays.assign(static_cast<std::size_t>(shape.requests), 0);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto request = static_cast<std::int64_t>(i);
    if (recurrent) {
      FillRecurrent(place, shape, request, rows[i], out);
    } else {
      FillAttention(place, shape, request, rows[i], out);
    }
  }
  return out;
}

void MetadataBuilder::FillRecurrent(const GroupPlace& place, const PassShape& shape, std::int64_t request,
                                    const SequenceRows& rows, GroupMetadata& out) const {
  const std::vector<BlockId>& blocks = rows.sequence->blocks[place.pool];
  const auto valid = static_cast<std::int64_t>(rows.tokens.size());
  std::vector<bool> touched(static_cast<std::size_t>(place.copies), false);
  const auto touch = [&](std::int64_t copy) {
    touched[static_cast<std::size_t>(copy)] = true;
    return copy;
  };
  // Short convolutions keep their history in copy 0 whichever copy the state is in.
  if (valid > 0) touch(0);
  const std::int64_t taken_in = rows.start - rows.sequence->pending;
  if (valid > 0 && taken_in > 0) {
    out.reads[static_cast<std::size_t>(request)] = touch(taken_in % place.copies);
  }
  out.replays[static_cast<std::size_t>(request)] = valid > 0 ? rows.sequence->pending : 0;
  const bool prefill = shape.pass == Pass::kTargetPrefill;
  for (std::int64_t i = 0; i < valid; ++i) {
    const auto row = static_cast<std::size_t>(request * shape.query_rows + i);
    out.bounds[row] = rows.start + i + 1;
    // All rows of a prefill are committed, so only its last state is read again. Of a decoding pass the
    // anchor is, whatever becomes of the drafts: under replay its state alone is kept.
    const bool keeps = prefill ? i + 1 == valid : !place.replays || i == 0;
    if (keeps) out.slots[row] = touch(out.bounds[row] % place.copies);
  }
  for (std::int64_t column = 0; column < place.table_width; ++column) {
    const bool used = touched[static_cast<std::size_t>(column / place.parts)];
    out.block_table[static_cast<std::size_t>(request * place.table_width + column)] =
        used ? blocks[static_cast<std::size_t>(column)].value() : unused_entry_;
  }
}

void MetadataBuilder::FillAttention(const GroupPlace& place, const PassShape& shape, std::int64_t request,
                                    const SequenceRows& rows, GroupMetadata& out) const {
  const std::vector<BlockId>& blocks = rows.sequence->blocks[place.pool];
  const auto valid = static_cast<std::int64_t>(rows.tokens.size());
  const std::int64_t length = rows.start + valid;
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < valid; ++i) {
    const auto row = static_cast<std::size_t>(request * shape.query_rows + i);
    const std::int64_t position = rows.start + i;
    if (position < 0) continue;
    if (OwnerOf(place.shard, position) == place.shard.rank) {
      const BlockId block = blocks[static_cast<std::size_t>(position / place.column_tokens)];
      out.slots[row] =
          block.value() * place.block_tokens + LocalPosition(place.shard, position) % place.block_tokens;
    }
    if (!rows.attends) continue;
    out.bounds[row] = LocalRowBound(place.shard, length, valid, i, place.behaviour.causal);
    seen = std::max(seen, out.bounds[row]);
  }
  const std::int64_t used_columns = CeilDiv(seen, place.block_tokens);
  for (std::int64_t column = 0; column < place.table_width; ++column) {
    out.block_table[static_cast<std::size_t>(request * place.table_width + column)] =
        column < used_columns ? blocks[static_cast<std::size_t>(column)].value() : unused_entry_;
  }
}

}  // namespace kvasir
