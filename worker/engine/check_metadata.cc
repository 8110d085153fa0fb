#include "worker/engine/check_metadata.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/engine/arena_layout.h"
#include "worker/engine/sampling_parameters.h"

namespace kvasir {
namespace {

struct GroupContext {
  std::string where;  // "draft_block, group draft.mla"
  const PlanPool* pool = nullptr;
  BlockRange range = {};
};

absl::Status Refuse(const GroupContext& at, const char* field, std::size_t row, std::int64_t value,
                    const std::string& allowed) {
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s: %s[%d] is %d, want %s", at.where, field, row, value, allowed));
}

absl::Status CheckSlots(const GroupContext& at, const GroupMetadata& group) {
  for (std::size_t row = 0; row < group.slots.size(); ++row) {
    const std::int64_t slot = group.slots[row];
    if (slot == -1) continue;
    if (slot >= 0 && at.range.Contains(BlockId(slot / at.pool->block_tokens))) continue;
    return Refuse(at, "slots", row, slot,
                  absl::StrFormat("-1 or a slot of block %d .. %d (%d tokens each)", at.range.first_block,
                                  at.range.end_block - 1, at.pool->block_tokens));
  }
  return absl::OkStatus();
}

absl::Status CheckBounds(const GroupContext& at, const PassShape& shape, const GroupMetadata& group) {
  const std::int64_t most = group.table_width * at.pool->block_tokens;
  for (std::int64_t request = 0; request < shape.requests; ++request) {
    std::int64_t seen = 0;
    for (std::int64_t i = 0; i < shape.query_rows; ++i) {
      const auto row = static_cast<std::size_t>(request * shape.query_rows + i);
      const std::int64_t bound = group.bounds[row];
      if (bound < 0 || bound > most) {
        return Refuse(at, "bounds", row, bound, absl::StrFormat("0 .. %d", most));
      }
      seen = std::max(seen, bound);
    }
    const std::int64_t columns = CeilDiv(seen, at.pool->block_tokens);
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto entry = static_cast<std::size_t>(request * group.table_width + column);
      if (at.range.Contains(BlockId(group.block_table[entry]))) continue;
      return Refuse(at, "block_table", entry, group.block_table[entry],
                    absl::StrFormat("a block %d .. %d", at.range.first_block, at.range.end_block - 1));
    }
  }
  return absl::OkStatus();
}

// One block of each part of a state copy.
absl::Status CheckCopy(const GroupContext& at, const GroupMetadata& group, std::int64_t request,
                       std::int64_t copy) {
  for (std::int64_t part = 0; part < at.pool->parts; ++part) {
    const auto entry = static_cast<std::size_t>(request * group.table_width + copy * at.pool->parts + part);
    if (at.range.Contains(BlockId(group.block_table[entry]))) continue;
    return Refuse(at, "block_table", entry, group.block_table[entry],
                  absl::StrFormat("a block %d .. %d", at.range.first_block, at.range.end_block - 1));
  }
  return absl::OkStatus();
}

// A request with a live row.
absl::Status CheckStateRequest(const GroupContext& at, const PassShape& shape, const GroupMetadata& group,
                               std::int64_t request) {
  KVASIR_RETURN_IF_ERROR(CheckCopy(at, group, request, 0));
  const std::int64_t read = group.reads[static_cast<std::size_t>(request)];
  if (read >= 0) KVASIR_RETURN_IF_ERROR(CheckCopy(at, group, request, read));
  for (std::int64_t i = 0; i < shape.query_rows; ++i) {
    const std::int64_t copy = group.slots[static_cast<std::size_t>(request * shape.query_rows + i)];
    if (copy >= 0) KVASIR_RETURN_IF_ERROR(CheckCopy(at, group, request, copy));
  }
  return absl::OkStatus();
}

absl::Status CheckInRange(const GroupContext& at, const char* field, const std::vector<std::int64_t>& values,
                          std::int64_t min, std::int64_t max) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < min || values[i] > max) {
      return Refuse(at, field, i, values[i], absl::StrFormat("%d .. %d", min, max));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStates(const GroupContext& at, const Plan& plan, const PassShape& shape,
                         const GroupMetadata& group) {
  const auto requests = static_cast<std::size_t>(shape.requests);
  if (group.reads.size() != requests || group.replays.size() != requests ||
      group.table_width != at.pool->lifetime.copies * at.pool->parts) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %d reads, %d replays and %d columns, want %d, %d and %d", at.where,
                        group.reads.size(), group.replays.size(), group.table_width, requests, requests,
                        at.pool->lifetime.copies * at.pool->parts));
  }
  const bool ring = plan.rollback == StateRollback::kReplay;
  const std::int64_t ring_rows = ring ? plan.draft_tokens : 0;
  const std::int64_t last_copy = at.pool->lifetime.copies - 1;
  KVASIR_RETURN_IF_ERROR(CheckInRange(at, "bounds", group.bounds, 0, plan.context_tokens));
  KVASIR_RETURN_IF_ERROR(CheckInRange(at, "reads", group.reads, -1, last_copy));
  KVASIR_RETURN_IF_ERROR(CheckInRange(at, "slots", group.slots, -1, last_copy));
  KVASIR_RETURN_IF_ERROR(CheckInRange(at, "replays", group.replays, 0, ring_rows));
  if (ring && shape.pass != Pass::kTargetPrefill && shape.query_rows > ring_rows + 1) {
    return Refuse(at, "query_rows", 0, shape.query_rows,
                  absl::StrFormat("at most %d, the anchor and the rows of the ring", ring_rows + 1));
  }
  for (std::int64_t request = 0; request < shape.requests; ++request) {
    const auto first = group.bounds.begin() + request * shape.query_rows;
    const bool live = std::any_of(first, first + shape.query_rows, [](std::int64_t b) { return b > 0; });
    if (!live) continue;
    KVASIR_RETURN_IF_ERROR(CheckStateRequest(at, shape, group, request));
    // What is replayed stands before the request's first row.
    const std::int64_t replays = group.replays[static_cast<std::size_t>(request)];
    if (replays > 0 && replays >= *first) {
      return Refuse(at, "replays", static_cast<std::size_t>(request), replays,
                    absl::StrFormat("fewer than %d, the first row's bound", *first));
    }
  }
  return absl::OkStatus();
}

// Written so that NaN fails.
absl::Status CheckDraws(const GroupContext& at, const PassMetadata& metadata) {
  const bool drafts = metadata.shape.pass == Pass::kDraftBlock;
  const auto requests = static_cast<std::size_t>(drafts ? metadata.shape.requests : 0);
  const auto rows = static_cast<std::size_t>(drafts ? metadata.shape.rows() : 0);
  if (metadata.temperatures.size() != requests || metadata.draws.size() != rows) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %d temperatures and %d draws, want %d and %d",
                                                      at.where, metadata.temperatures.size(),
                                                      metadata.draws.size(), requests, rows));
  }
  for (const double temperature : metadata.temperatures) {
    if (temperature >= 0 && temperature <= kTemperatureMax) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: temperature %g, want 0 .. %g", at.where, temperature, kTemperatureMax));
  }
  for (const double draw : metadata.draws) {
    if (draw >= 0 && draw < 1) continue;
    return absl::InvalidArgumentError(absl::StrFormat("%s: draw %g, want [0, 1)", at.where, draw));
  }
  return absl::OkStatus();
}

// The states that rows of a chain draft start from and leave; other passes have none.
absl::Status CheckCarried(const GroupContext& at, const Plan& plan, const PassMetadata& metadata,
                          bool chain) {
  const PassShape& shape = metadata.shape;
  const bool draft = chain && RoleOf(shape.pass) == Role::kDraft;
  const bool context = draft && shape.pass == Pass::kDraftContext;
  const auto starts = static_cast<std::size_t>(!draft ? 0 : context ? shape.rows() : shape.requests);
  const auto carries = static_cast<std::size_t>(context ? shape.rows() : 0);
  if (metadata.previous.size() != starts || metadata.carried.size() != carries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %d states to start from and %d carried, want %d and %d", at.where,
                        metadata.previous.size(), metadata.carried.size(), starts, carries));
  }
  const std::int64_t states = plan.max_requests + (context ? shape.rows() : 0);
  const std::vector<std::int64_t> previous(metadata.previous.begin(), metadata.previous.end());
  KVASIR_RETURN_IF_ERROR(CheckInRange(at, "previous", previous, 0, states - 1));
  return CheckInRange(at, "carried", metadata.carried, -1, plan.max_requests - 1);
}

absl::Status CheckGroup(const Plan& plan, const PassMetadata& metadata, const GroupMetadata& group) {
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& its : pool.groups) {
      if (its.id != group.group) continue;
      const GroupContext at{.where = absl::StrFormat("%s, group %s", PassName(metadata.shape.pass), its.name),
                            .pool = &pool,
                            .range = BlockRangeOf(plan, pool)};
      const auto rows = static_cast<std::size_t>(metadata.shape.rows());
      const auto entries = static_cast<std::size_t>(metadata.shape.requests * group.table_width);
      if (group.slots.size() != rows || group.bounds.size() != rows || group.block_table.size() != entries) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "%s: %d slots, %d bounds and %d table entries, want %d, %d and %d", at.where, group.slots.size(),
            group.bounds.size(), group.block_table.size(), rows, rows, entries));
      }
      if (its.behaviour.mixer == Mixer::kRecurrent) return CheckStates(at, plan, metadata.shape, group);
      KVASIR_RETURN_IF_ERROR(CheckSlots(at, group));
      return CheckBounds(at, metadata.shape, group);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: group %d is not in the plan", PassName(metadata.shape.pass), group.group.value()));
}

}  // namespace

absl::Status CheckMetadata(const Plan& plan, std::int64_t vocab, const PassMetadata& metadata, bool chain) {
  const PassShape& shape = metadata.shape;
  const auto rows = static_cast<std::size_t>(shape.rows());
  if (metadata.token_ids.size() != rows || metadata.positions.size() != rows ||
      metadata.anchors.size() != static_cast<std::size_t>(shape.requests)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: %d token ids, %d positions and %d anchors, want %d rows of %d requests", PassName(shape.pass),
        metadata.token_ids.size(), metadata.positions.size(), metadata.anchors.size(), rows, shape.requests));
  }
  const GroupContext at{.where = std::string(PassName(shape.pass))};
  const std::string tokens = absl::StrFormat("0 .. %d (vocabulary)", vocab - 1);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int32_t token = metadata.token_ids[row];
    if (token < 0 || token >= vocab) return Refuse(at, "token_ids", row, token, tokens);
    const std::int64_t position = metadata.positions[row];
    if (position < 0 || position >= plan.context_tokens) {
      return Refuse(at, "positions", row, position, absl::StrFormat("0 .. %d", plan.context_tokens - 1));
    }
  }
  for (std::size_t request = 0; request < metadata.anchors.size(); ++request) {
    const std::int32_t anchor = metadata.anchors[request];
    if (anchor < 0 || anchor >= vocab) return Refuse(at, "anchors", request, anchor, tokens);
  }
  KVASIR_RETURN_IF_ERROR(CheckDraws(at, metadata));
  KVASIR_RETURN_IF_ERROR(CheckCarried(at, plan, metadata, chain));
  for (const GroupMetadata& group : metadata.groups) {
    KVASIR_RETURN_IF_ERROR(CheckGroup(plan, metadata, group));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
