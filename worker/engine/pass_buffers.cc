#include "worker/engine/pass_buffers.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "common/base/status_macros.h"
#include "worker/engine/arena_layout.h"

namespace kvasir {
namespace {

constexpr std::int64_t kAlignment = 64;

// Hands out aligned ranges one after the other.
class Cutter {
 public:
  std::int64_t Take(std::int64_t bytes) {
    const std::int64_t at = next_;
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  [[nodiscard]] std::int64_t total() const { return next_; }

 private:
  std::int64_t next_ = 0;
};

template <class T>
std::int64_t BytesOf(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(T));
}

// [requests, rows] to [rows, requests].
template <class T>
std::vector<T> Turned(const std::vector<T>& values, const PassShape& shape) {
  std::vector<T> out(values.size());
  const auto requests = static_cast<std::size_t>(shape.requests);
  const auto rows = static_cast<std::size_t>(shape.query_rows);
  if (values.size() != requests * rows) return values;
  for (std::size_t request = 0; request < requests; ++request) {
    for (std::size_t row = 0; row < rows; ++row) out[row * requests + request] = values[request * rows + row];
  }
  return out;
}

template <class T>
void CopyTo(std::vector<std::byte>& image, std::int64_t offset, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(image.data() + offset, values.data(), values.size() * sizeof(T));
}

// The largest shape of each pass; offsets grow with either number.
std::vector<PassShape> LargestShapes(const Plan& plan) {
  std::int64_t requests = plan.max_requests;
  for (const PlanGraph& graph : plan.graphs) requests = std::max(requests, graph.bucket);
  std::vector<PassShape> shapes = {{Pass::kTargetPrefill, 1, plan.prefill_chunk},
                                   {Pass::kTargetDecode, requests, 1}};
  if (plan.draft_tokens > 0) {
    shapes.push_back({Pass::kDraftContext, 1, plan.prefill_chunk});
    shapes.push_back({Pass::kTargetVerify, requests, plan.draft_tokens + 1});
    shapes.push_back({Pass::kDraftContext, requests, plan.draft_tokens + 1});
    shapes.push_back({Pass::kDraftBlock, requests, DraftBlockRows(plan)});
  }
  for (const PlanGraph& graph : plan.graphs) shapes.push_back({graph.pass, graph.bucket, graph.query_rows});
  return shapes;
}

}  // namespace

absl::StatusOr<PassBuffers> PassBuffers::Create(Backend& backend, const Plan& plan,
                                                const PassBufferSizes& sizes) {
  PassBuffers buffers;
  buffers.chain_ = sizes.chain;
  for (const PlanGroup* group : GroupsOf(plan)) {
    buffers.widths_.push_back({.role = group->behaviour.role, .mixer = group->behaviour.mixer});
  }
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) {
      buffers.widths_[static_cast<std::size_t>(group.id.value())].table_width =
          ColumnsFor(plan, pool, plan.context_tokens);
    }
  }
  std::int64_t input_bytes = 0;
  for (const PassShape& shape : LargestShapes(plan)) {
    buffers.rows_max_ = std::max(buffers.rows_max_, shape.rows());
    input_bytes = std::max(input_bytes, buffers.OffsetsOf(shape).bytes);
  }
  const std::int64_t rows = buffers.rows_max_;
  Cutter cutter;
  const std::int64_t logits = cutter.Take(BytesOf<float>(rows * sizes.vocab));
  const std::int64_t next_ids = cutter.Take(BytesOf<std::int32_t>(rows));
  const std::int64_t drafted = cutter.Take(BytesOf<std::int32_t>(rows));
  const std::int64_t confidences = cutter.Take(BytesOf<float>(rows));
  const std::int64_t seats = sizes.chain ? plan.max_requests : 0;
  const std::int64_t carries = cutter.Take(BytesOf<float>((seats + rows) * sizes.tap_columns));
  const std::int64_t fault = cutter.Take(BytesOf<std::int32_t>(1));
  KVASIR_ASSIGN_OR_RETURN(buffers.inputs_, backend.Allocate(Bytes(input_bytes)));
  KVASIR_ASSIGN_OR_RETURN(buffers.results_, backend.Allocate(Bytes(cutter.total())));
  std::byte* base = buffers.results_->data();
  buffers.outputs_.logits = reinterpret_cast<float*>(base + logits);
  buffers.outputs_.next_ids = reinterpret_cast<std::int32_t*>(base + next_ids);
  buffers.outputs_.drafted = reinterpret_cast<std::int32_t*>(base + drafted);
  buffers.outputs_.confidences = reinterpret_cast<float*>(base + confidences);
  if (sizes.tap_columns > 0) {
    buffers.outputs_.carries = reinterpret_cast<float*>(base + carries);
    buffers.outputs_.taps = buffers.outputs_.carries + seats * sizes.tap_columns;
    buffers.outputs_.seats = seats;
    // A pass without sequences, which tests and captures run, starts from a state too.
    KVASIR_RETURN_IF_ERROR(backend.Zero(base + carries, Bytes(BytesOf<float>(seats * sizes.tap_columns))));
  }
  buffers.outputs_.fault = reinterpret_cast<std::int32_t*>(base + fault);
  return buffers;
}

PassBuffers::Offsets PassBuffers::OffsetsOf(const PassShape& shape) const {
  Cutter cutter;
  Offsets at;
  at.token_ids = cutter.Take(BytesOf<std::int32_t>(shape.rows()));
  at.positions = cutter.Take(BytesOf<std::int64_t>(shape.rows()));
  at.anchors = cutter.Take(BytesOf<std::int32_t>(shape.requests));
  if (shape.pass == Pass::kDraftBlock) {
    at.temperatures = cutter.Take(BytesOf<double>(shape.requests));
    at.draws = cutter.Take(BytesOf<double>(shape.rows()));
  }
  if (Starts(shape)) at.previous = cutter.Take(BytesOf<std::int32_t>(shape.rows()));
  if (Carries(shape)) at.carried = cutter.Take(BytesOf<std::int64_t>(shape.rows()));
  for (const GroupWidth& width : widths_) {
    GroupOffsets group{.table_width = width.table_width,
                       .used = width.role == RoleOf(shape.pass),
                       .recurrent = width.mixer == Mixer::kRecurrent};
    if (group.used) {
      group.block_table = cutter.Take(BytesOf<std::int64_t>(shape.requests * width.table_width));
      group.slots = cutter.Take(BytesOf<std::int64_t>(shape.rows()));
      group.bounds = cutter.Take(BytesOf<std::int64_t>(shape.rows()));
    }
    if (group.used && group.recurrent) {
      group.reads = cutter.Take(BytesOf<std::int64_t>(shape.requests));
      group.replays = cutter.Take(BytesOf<std::int64_t>(shape.requests));
    }
    at.groups.push_back(group);
  }
  at.bytes = cutter.total();
  return at;
}

PassInputs PassBuffers::InputsAt(const PassShape& shape) const {
  const Offsets at = OffsetsOf(shape);
  std::byte* base = inputs_->data();
  PassInputs in;
  in.token_ids = reinterpret_cast<std::int32_t*>(base + at.token_ids);
  in.positions = reinterpret_cast<std::int64_t*>(base + at.positions);
  in.anchors = reinterpret_cast<std::int32_t*>(base + at.anchors);
  if (shape.pass == Pass::kDraftBlock) {
    in.temperatures = reinterpret_cast<double*>(base + at.temperatures);
    in.draws = reinterpret_cast<double*>(base + at.draws);
  }
  if (Starts(shape)) in.previous = reinterpret_cast<std::int32_t*>(base + at.previous);
  if (Carries(shape)) in.carried = reinterpret_cast<std::int64_t*>(base + at.carried);
  for (const GroupOffsets& group : at.groups) {
    GroupInputs& its = in.groups.emplace_back();
    if (!group.used) continue;
    its.block_table = reinterpret_cast<std::int64_t*>(base + group.block_table);
    its.table_width = group.table_width;
    its.slots = reinterpret_cast<std::int64_t*>(base + group.slots);
    its.bounds = reinterpret_cast<std::int64_t*>(base + group.bounds);
    if (!group.recurrent) continue;
    its.reads = reinterpret_cast<std::int64_t*>(base + group.reads);
    its.replays = reinterpret_cast<std::int64_t*>(base + group.replays);
  }
  return in;
}

absl::Status PassBuffers::Upload(Backend& backend, const PassMetadata& metadata) const {
  const Offsets at = OffsetsOf(metadata.shape);
  std::vector<std::byte> image(static_cast<std::size_t>(at.bytes));
  const PassShape& shape = metadata.shape;
  const bool turns = chain_ && shape.pass == Pass::kDraftBlock;
  const auto rows = [&](std::int64_t offset, const auto& values) {
    if (turns) return CopyTo(image, offset, Turned(values, shape));
    CopyTo(image, offset, values);
  };
  rows(at.token_ids, metadata.token_ids);
  rows(at.positions, metadata.positions);
  CopyTo(image, at.anchors, metadata.anchors);
  CopyTo(image, at.temperatures, metadata.temperatures);
  rows(at.draws, metadata.draws);
  CopyTo(image, at.previous, metadata.previous);
  CopyTo(image, at.carried, metadata.carried);
  for (const GroupMetadata& group : metadata.groups) {
    const GroupOffsets& its = at.groups[static_cast<std::size_t>(group.group.value())];
    CopyTo(image, its.block_table, group.block_table);
    rows(its.slots, group.slots);
    rows(its.bounds, group.bounds);
    CopyTo(image, its.reads, group.reads);
    CopyTo(image, its.replays, group.replays);
  }
  return backend.Write(inputs_->data(), image);
}

}  // namespace kvasir
