#include "tests/testing/model_ranks.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/geometry/context_shard.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kAbsurdBlock = 2147480000;

void AddGroup(const ModelDescription& model, Role role, const ModelRanksOptions& options, PlanPool* pool) {
  PlanGroup group;
  group.id = GroupId(static_cast<std::int32_t>(pool->groups.size()));
  group.name = role == Role::kTarget ? "target.mla" : "draft.mla";
  group.behaviour.role = role;
  group.behaviour.causal = role == Role::kTarget;
  group.behaviour.backend = "cpu";
  for (const ModelLayer& described : model.layers) {
    PlanLayer layer;
    layer.id = {role, described.index, 0};
    layer.name = absl::StrFormat("layers.%d", described.index);
    layer.layout.kind = LayoutKind::kLatent;
    layer.layout.sharded = options.topology.dcp > 1;
    layer.layout.dtype = options.dtype;
    layer.layout.heads = 1;
    if (const auto* mla = std::get_if<MlaShape>(&described.mixer)) {
      layer.layout.key_dim = mla->kv_lora_rank;
      layer.layout.value_dim = mla->rope_dim;
    } else if (const auto* gqa = std::get_if<AttentionShape>(&described.mixer)) {
      layer.layout.kind = LayoutKind::kKeyValue;
      layer.layout.heads = std::max<std::int64_t>(gqa->kv_heads / options.topology.tp, 1);
      layer.layout.key_dim = gqa->head_dim;
      layer.layout.value_dim = gqa->value_dim;
    }
    layer.offset_bytes = pool->block_bytes;
    layer.page_bytes = RowBytes(layer.layout) * pool->block_tokens;
    pool->block_bytes += layer.page_bytes;
    group.layers.push_back(layer);
  }
  pool->groups.push_back(group);
}

}  // namespace

Plan HandMadePlan(const ModelRanksOptions& options) {
  Plan plan;
  plan.topology = options.topology;
  PlanPool pool;
  pool.name = "tokens";
  pool.sharded = options.topology.dcp > 1;
  pool.block_tokens = options.block_tokens;
  AddGroup(options.target, Role::kTarget, options, &pool);
  if (options.draft.has_value()) AddGroup(*options.draft, Role::kDraft, options, &pool);
  pool.stride_bytes = (pool.block_bytes + 255) / 256 * 256;
  pool.blocks_per_parent = 1;
  plan.parent_bytes = Bytes(pool.stride_bytes);
  plan.parents = options.blocks;
  plan.arena_bytes = Bytes(options.blocks * pool.stride_bytes);
  plan.pools.push_back(pool);
  return plan;
}

// The buffers of one shape.
struct ModelRanks::Inputs {
  std::vector<std::int32_t> token_ids, anchors;
  std::vector<std::int64_t> positions;
  struct Group {
    std::vector<std::int64_t> table, slots, bounds;
  };
  std::vector<Group> groups;
  std::unique_ptr<Graph> graph;

  Inputs(const PassShape& shape, std::size_t group_count, std::int64_t table_width) {
    const std::size_t rows = static_cast<std::size_t>(shape.rows());
    token_ids.resize(rows);
    positions.resize(rows);
    anchors.resize(static_cast<std::size_t>(shape.requests));
    groups.resize(group_count);
    for (Group& group : groups) {
      group.table.resize(static_cast<std::size_t>(shape.requests * table_width));
      group.slots.resize(rows);
      group.bounds.resize(rows);
    }
  }
};

struct ModelRanks::Member {
  RankPlace place;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<DeviceMemory> arena;
  std::unique_ptr<RankModel> model;
  std::map<std::tuple<Pass, std::int64_t, std::int64_t>, Inputs> captured;
  std::vector<std::int32_t> next_ids, drafted;
  std::vector<float> logits, taps, confidences;
  std::int32_t fault = 0;
};

ModelRanks::~ModelRanks() = default;

const RankModel& ModelRanks::model(std::int64_t rank) const {
  return *members_[static_cast<std::size_t>(rank)]->model;
}

absl::StatusOr<std::unique_ptr<ModelRanks>> ModelRanks::Create(const ModelRanksOptions& options) {
  std::unique_ptr<ModelRanks> world(new ModelRanks);
  world->options_ = options;
  world->plan_ = HandMadePlan(options);
  world->tensor_ = std::make_unique<ThreadGroup>(options.topology.tp);
  for (std::int64_t g = 0; g < options.topology.tp / options.topology.dcp; ++g) {
    world->context_.push_back(std::make_unique<ThreadGroup>(options.topology.dcp));
  }
  for (std::int64_t rank = 0; rank < options.topology.tp; ++rank) {
    KVASIR_RETURN_IF_ERROR(world->AddRank(options, rank));
  }
  return world;
}

absl::Status ModelRanks::AddRank(const ModelRanksOptions& options, std::int64_t rank) {
  auto member = std::make_unique<Member>();
  const std::int64_t dcp = options.topology.dcp;
  member->place = {rank, options.topology};
  CpuOptions cpu;
  cpu.tensor = tensor_->rank(rank);
  cpu.context = context_[static_cast<std::size_t>(rank / dcp)]->rank(rank % dcp);
  cpu.kernels = options.kernels;
  member->backend = MakeCpuBackend(cpu);
  KVASIR_ASSIGN_OR_RETURN(member->arena, member->backend->Allocate(plan_.arena_bytes));
  // All bits set is a NaN in bf16 and in f32. Block 0 stays zero.
  const std::int64_t stride = plan_.pools[0].stride_bytes;
  std::memset(member->arena->data() + stride, 0xff,
              static_cast<std::size_t>(plan_.arena_bytes.value() - stride));
  RankModelOptions model;
  model.plan = &plan_;
  model.place = member->place;
  model.target = &options.target;
  model.draft = options.draft.has_value() ? &*options.draft : nullptr;
  model.weight_seed = options.seed;
  model.weights = options.weights;
  model.rows_max = options.rows_max;
  model.arena = member->arena->data();
  KVASIR_ASSIGN_OR_RETURN(member->model, MakeRankModel(*member->backend, model));
  const std::size_t rows = static_cast<std::size_t>(options.rows_max);
  member->logits.resize(rows * static_cast<std::size_t>(options.target.vocab));
  member->next_ids.resize(rows);
  member->drafted.resize(rows);
  member->confidences.resize(rows);
  if (options.draft.has_value()) {
    member->taps.resize(rows * options.draft->draft->target_taps.size() *
                        static_cast<std::size_t>(options.target.hidden));
  }
  members_.push_back(std::move(member));
  return absl::OkStatus();
}

void ModelRanks::WriteMetadata(const RankPlace& place, const PassCall& call, Inputs& inputs) const {
  const ContextShard shard{options_.topology.dcp, options_.topology.interleave, place.dcp_rank()};
  for (Inputs::Group& group : inputs.groups) std::fill(group.table.begin(), group.table.end(), kAbsurdBlock);
  std::size_t row = 0;
  for (std::size_t b = 0; b < call.requests.size(); ++b) {
    const PassRequest& request = call.requests[b];
    inputs.anchors[b] = request.tokens[0];
    for (Inputs::Group& group : inputs.groups) {
      std::copy(request.blocks.begin(), request.blocks.end(),
                group.table.begin() + static_cast<std::ptrdiff_t>(b) * options_.blocks);
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(request.tokens.size()); ++i, ++row) {
      const bool valid = i < request.valid;
      const std::int64_t position = request.position + i;
      inputs.token_ids[row] = valid ? request.tokens[static_cast<std::size_t>(i)] : 0;
      inputs.positions[row] = valid ? position : 0;
      std::int64_t slot = -1;
      if (valid && OwnerOf(shard, position) == shard.rank) {
        const std::int64_t local = LocalPosition(shard, position);
        const std::int64_t block = request.blocks[static_cast<std::size_t>(local / options_.block_tokens)];
        slot = block * options_.block_tokens + local % options_.block_tokens;
      }
      std::int64_t bound = RowBound(request.position + request.valid, request.valid, i, call.causal);
      if (bound > 0) bound = std::max<std::int64_t>(0, bound + call.bound_shift);
      for (Inputs::Group& group : inputs.groups) {
        group.slots[row] = slot;
        group.bounds[row] = LocalLength(shard, bound);
      }
    }
  }
}

LaunchList ModelRanks::BuildList(Member& m, const PassShape& shape, Inputs& inputs) const {
  PassInputs in{.token_ids = inputs.token_ids.data(),
                .positions = inputs.positions.data(),
                .anchors = inputs.anchors.data(),
                .groups = {}};
  for (Inputs::Group& group : inputs.groups) {
    in.groups.push_back({.block_table = group.table.data(),
                         .table_width = options_.blocks,
                         .slots = group.slots.data(),
                         .bounds = group.bounds.data()});
  }
  const PassOutputs out{.logits = m.logits.data(),
                        .next_ids = m.next_ids.data(),
                        .drafted = m.drafted.data(),
                        .confidences = m.confidences.data(),
                        .taps = m.taps.empty() ? nullptr : m.taps.data(),
                        .fault = &m.fault};
  return m.model->Build(shape, in, out);
}

absl::Status ModelRanks::RunOn(Member& m, const PassCall& call) const {
  const PassShape shape{.pass = call.pass,
                        .requests = static_cast<std::int64_t>(call.requests.size()),
                        .query_rows = static_cast<std::int64_t>(call.requests[0].tokens.size())};
  const std::size_t group_count = plan_.pools[0].groups.size();
  m.fault = 0;
  if (!options_.replay) {
    Inputs inputs(shape, group_count, options_.blocks);
    WriteMetadata(m.place, call, inputs);
    return m.backend->Run(BuildList(m, shape, inputs));
  }
  const auto [at, is_new] = m.captured.try_emplace({shape.pass, shape.requests, shape.query_rows}, shape,
                                                   group_count, options_.blocks);
  if (is_new) {
    LaunchList list = BuildList(m, shape, at->second);
    KVASIR_ASSIGN_OR_RETURN(at->second.graph, m.backend->Capture(list));
    for (Launch& launch : list) launch = AddOp{};
  }
  WriteMetadata(m.place, call, at->second);
  return at->second.graph->Replay();
}

absl::StatusOr<PassResult> ModelRanks::Run(const PassCall& call) {
  KVASIR_RETURN_IF_ERROR(RunRanks(options_.topology.tp, [&](std::int64_t rank) {
    return RunOn(*members_[static_cast<std::size_t>(rank)], call);
  }));
  const std::size_t rows = call.requests.size() * call.requests[0].tokens.size();
  const std::size_t logits = rows * static_cast<std::size_t>(options_.target.vocab);
  const Member& first = *members_[0];
  PassResult result;
  for (const std::unique_ptr<Member>& member : members_) {
    result.fault = result.fault || member->fault != 0;
    if (std::memcmp(member->logits.data(), first.logits.data(), logits * sizeof(float)) != 0) {
      return absl::InternalError(absl::StrFormat("logits of rank %d differ from rank 0", member->place.rank));
    }
  }
  result.logits.assign(first.logits.begin(), first.logits.begin() + static_cast<std::ptrdiff_t>(logits));
  result.next_ids.assign(first.next_ids.begin(), first.next_ids.begin() + static_cast<std::ptrdiff_t>(rows));
  result.drafted.assign(first.drafted.begin(), first.drafted.begin() + static_cast<std::ptrdiff_t>(rows));
  result.confidences.assign(first.confidences.begin(),
                            first.confidences.begin() + static_cast<std::ptrdiff_t>(rows));
  return result;
}

std::vector<float> ModelRanks::Taps(std::int64_t rows) const {
  const std::vector<float>& taps = members_[0]->taps;
  return {taps.begin(), taps.begin() + static_cast<std::ptrdiff_t>(taps.size()) / options_.rows_max * rows};
}

void ModelRanks::PoisonToken(const std::vector<std::int64_t>& blocks, std::int64_t position) {
  const PlanPool& pool = plan_.pools[0];
  for (const std::unique_ptr<Member>& member : members_) {
    const ContextShard shard{options_.topology.dcp, options_.topology.interleave, member->place.dcp_rank()};
    if (OwnerOf(shard, position) != shard.rank) continue;
    const std::int64_t local = LocalPosition(shard, position);
    const std::int64_t block = blocks[static_cast<std::size_t>(local / pool.block_tokens)];
    for (const PlanGroup& group : pool.groups) {
      for (const PlanLayer& layer : group.layers) {
        const std::int64_t row_bytes = RowBytes(layer.layout);
        std::memset(member->arena->data() + block * pool.stride_bytes + layer.offset_bytes +
                        local % pool.block_tokens * row_bytes,
                    0xff, static_cast<std::size_t>(row_bytes));
      }
    }
  }
}

}  // namespace kvasir::testing
