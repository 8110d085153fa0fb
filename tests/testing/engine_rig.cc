#include "tests/testing/engine_rig.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/geometry/block_address.h"
#include "tests/testing/engine_plan.h"
#include "worker/engine/arena_layout.h"

namespace kvasir::testing {
namespace {

constexpr char kPlanId[] = "small";
constexpr int kNanByte = 0xff;  // 0xffff is a NaN in bf16, 0xffffffff in fp32

bool Same(const StepOutcome& a, const StepOutcome& b) {
  return a.step == b.step &&
         std::equal(a.sequences.begin(), a.sequences.end(), b.sequences.begin(), b.sequences.end(),
                    [](const SequenceOutcome& x, const SequenceOutcome& y) {
                      return x.id == y.id && x.drafted == y.drafted && x.accepted == y.accepted &&
                             x.emitted == y.emitted && x.logprobs == y.logprobs;
                    });
}

}  // namespace

absl::StatusOr<std::unique_ptr<EngineRig>> EngineRig::Create(const EngineRigOptions& options) {
  std::unique_ptr<EngineRig> rig(new EngineRig());
  rig->plan_ = options.plan;
  rig->costs_ = options.costs;
  const Topology& topology = rig->plan_.topology;
  rig->tensor_ = std::make_unique<ThreadGroup>(topology.tp);
  for (std::int64_t group = 0; group < topology.tp / topology.dcp; ++group) {
    rig->context_.push_back(std::make_unique<ThreadGroup>(topology.dcp));
  }
  rig->members_.resize(static_cast<std::size_t>(topology.tp));
  for (std::int64_t rank = 0; rank < topology.tp; ++rank) {
    KVASIR_RETURN_IF_ERROR(rig->AddRank(options, rank));
  }
  KVASIR_ASSIGN_OR_RETURN(rig->scheduler_, Scheduler::Create(rig->plan_, kPlanId, Epoch(1), kSmallVocab));
  if (options.shuffle_seed != 0) rig->ShuffleParents(options.shuffle_seed);
  return rig;
}

// Fisher and Yates; the null parent keeps its name.
void EngineRig::ShuffleParents(std::int64_t seed) {
  std::uint64_t state = static_cast<std::uint64_t>(seed);
  parent_names_.resize(static_cast<std::size_t>(plan_.parents));
  std::iota(parent_names_.begin(), parent_names_.end(), 0);
  for (std::size_t i = parent_names_.size() - 1; i > 1; --i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::swap(parent_names_[i], parent_names_[1 + (state >> 33U) % i]);
  }
}

void EngineRig::RenameBlocks(StepPlan& step) const {
  if (parent_names_.empty()) return;
  const auto name = [this](std::int64_t parent) { return parent_names_[static_cast<std::size_t>(parent)]; };
  for (ParentId& parent : step.zero_parents) parent = ParentId(name(parent.value()));
  std::sort(step.zero_parents.begin(), step.zero_parents.end());
  const auto rename = [&](std::size_t pool, BlockId& block) {
    const std::int64_t per_parent = plan_.pools[pool].blocks_per_parent;
    const std::int64_t place = per_parent - 1 - block.value() % per_parent;
    block = BlockId(name(block.value() / per_parent) * per_parent + place);
  };
  for (StepSequence& sequence : step.sequences) {
    for (std::size_t pool = 0; pool < plan_.pools.size(); ++pool) {
      for (BlockId& block : sequence.blocks[pool]) rename(pool, block);
    }
  }
  if (!step.move.has_value()) return;
  step.move->parent = ParentId(name(step.move->parent.value()));
  for (ParentMove::Block& block : step.move->blocks) {
    rename(static_cast<std::size_t>(step.move->pool.value()), block.from);
    rename(static_cast<std::size_t>(step.move->pool.value()), block.to);
  }
  std::reverse(step.move->blocks.begin(), step.move->blocks.end());  // places turn around in a parent
}

absl::Status EngineRig::AddRank(const EngineRigOptions& options, std::int64_t rank) {
  const Topology& topology = plan_.topology;
  CpuOptions cpu{.kernels = options.kernels};
  if (topology.tp > 1) cpu.tensor = tensor_->rank(rank);
  if (topology.dcp > 1) {
    cpu.context = context_[static_cast<std::size_t>(rank / topology.dcp)]->rank(rank % topology.dcp);
  }
  Member& member = At(rank);
  member.device = options.make_backend ? options.make_backend(cpu.tensor, cpu.context) : MakeCpuBackend(cpu);
  member.backend = std::make_unique<FaultBackend>(*member.device);
  RankEngineOptions engine{.plan = plan_,
                           .plan_id = kPlanId,
                           .epoch = Epoch(1),
                           .place = RankPlace{.rank = rank, .topology = topology},
                           .target = TargetOf(plan_),
                           .draft = std::nullopt,
                           .weight_seed = options.weight_seed,
                           .use_graphs = options.use_graphs,
                           .communicator = cpu.tensor,
                           .context_communicator = cpu.context,
                           .draft_override = options.draft_override,
                           .observe_pass = {},
                           .unused_table_entry = kAbsurdBlock};
  if (plan_.draft_tokens > 0) engine.draft = DraftOf(plan_);
  if (options.observe_pass) {
    engine.observe_pass = [observe = options.observe_pass, rank](const PassMetadata& metadata,
                                                                 std::span<const float> logits) {
      observe(rank, metadata, logits);
    };
  }
  KVASIR_ASSIGN_OR_RETURN(member.engine, RankEngine::Create(*member.backend, std::move(engine)));
  const std::span<std::byte> arena =
      member.engine->arena().subspan(static_cast<std::size_t>(plan_.parent_bytes.value()));
  std::memset(arena.data(), kNanByte, arena.size());
  return absl::OkStatus();
}

std::vector<absl::StatusOr<StepOutcome>> EngineRig::ExecuteOnAll(const StepPlan& step) {
  std::vector<absl::StatusOr<StepOutcome>> answers(members_.size(), absl::UnknownError("not run"));
  const absl::Status ran = RunRanks(ranks(), [&](std::int64_t rank) {
    answers[static_cast<std::size_t>(rank)] = At(rank).engine->Execute(step);
    return absl::OkStatus();
  });
  if (!ran.ok()) answers[0] = ran;
  return answers;
}

absl::StatusOr<std::optional<std::vector<SequenceProgress>>> EngineRig::Step() {
  std::optional<StepPlan> step = scheduler_->NextStep();
  if (!step.has_value()) return std::optional<std::vector<SequenceProgress>>();
  RenameBlocks(*step);
  if (!costs_.empty()) step->cost = costs_[static_cast<std::size_t>(steps_) % costs_.size()];
  last_step_ = *step;
  ++steps_;
  const std::vector<absl::StatusOr<StepOutcome>> answers = ExecuteOnAll(*step);
  for (const absl::StatusOr<StepOutcome>& answer : answers) {
    if (!answer.ok()) return answer.status();
    if (!Same(*answer, *answers[0])) return absl::InternalError("ranks answer differently");
  }
  KVASIR_ASSIGN_OR_RETURN(std::vector<SequenceProgress> progress, scheduler_->Apply(*answers[0]));
  for (const SequenceProgress& its : progress) {
    Tokens32& tokens = tokens_[its.id];
    tokens.insert(tokens.end(), its.tokens.begin(), its.tokens.end());
    drafted_ += its.drafted;
    accepted_ += its.accepted;
  }
  return std::optional(std::move(progress));
}

absl::StatusOr<std::map<SequenceId, Tokens32>> EngineRig::Drain() {
  for (;;) {
    KVASIR_ASSIGN_OR_RETURN(const auto progress, Step());
    if (!progress.has_value()) return tokens_;
  }
}

void EngineRig::PlantNan(std::int64_t rank, const StepSequence& sequence, Role role,
                         std::optional<Mixer> mixer) {
  for (const PlanPool& pool : plan_.pools) {
    for (const PlanGroup& group : pool.groups) {
      if (group.behaviour.role != role || group.behaviour.mixer != mixer.value_or(group.behaviour.mixer)) {
        continue;
      }
      for (const PlanLayer& layer : group.layers) {
        const std::vector<BlockId>& blocks = sequence.blocks[static_cast<std::size_t>(pool.id.value())];
        for (std::size_t c = 0; c < blocks.size(); ++c) {
          // A state's page stands in the blocks of its part only.
          if (static_cast<std::int64_t>(c) % pool.parts != layer.part) continue;
          std::byte* at =
              engine(rank).arena().data() + blocks[c].value() * pool.stride_bytes + layer.offset_bytes;
          std::memset(at, kNanByte, static_cast<std::size_t>(layer.page_bytes));
        }
      }
    }
  }
}

absl::StatusOr<std::vector<Tokens32>> DecodeAll(EngineRig& rig, const std::vector<Tokens32>& prompts,
                                                std::int64_t max_tokens, bool speculate) {
  std::vector<SequenceId> ids;
  for (const Tokens32& prompt : prompts) {
    SequenceRequest request{.prompt = prompt, .max_tokens = max_tokens, .speculate = speculate};
    KVASIR_ASSIGN_OR_RETURN(const SequenceId id, rig.scheduler().Join(request));
    ids.push_back(id);
  }
  KVASIR_ASSIGN_OR_RETURN(const auto tokens, rig.Drain());
  std::vector<Tokens32> all;
  all.reserve(ids.size());
  for (const SequenceId id : ids) all.push_back(tokens.at(id));
  return all;
}

Tokens32 MakePrompt(std::int64_t length, std::int64_t seed) {
  Tokens32 prompt;
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 2654435761U + 12345U;
  for (std::int64_t i = 0; i < length; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    prompt.push_back(static_cast<std::int32_t>((state >> 33U) % (kSmallVocab - 1)));
  }
  return prompt;
}

}  // namespace kvasir::testing
