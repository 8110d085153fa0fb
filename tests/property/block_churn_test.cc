// 10,000 sequences come and go in a small arena. Blocks carry guard patterns over every byte: whoever writes
// to memory of another sequence, of another pool or of the null parent is caught. Placement is compared with
// a model that is too simple to be wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_random.h"
#include "worker/engine/arena_layout.h"
#include "worker/engine/block_pool.h"
#include "worker/engine/check_step.h"
#include "worker/engine/scheduler.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {
namespace {

using testing::kSmallVocab;
using testing::MakeEnginePlan;
using testing::MakePoolPlan;
using testing::PoolSketch;
using testing::SeededRandom;

constexpr std::int64_t kSequences = 10000;

Plan MixedPlan() {
  return MakePoolPlan({PoolSketch{.name = "tokens", .blocks_per_parent = 6},
                       PoolSketch{.name = "window",
                                  .lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = 6},
                                  .block_tokens = 2,
                                  .blocks_per_parent = 4},
                       PoolSketch{.name = "state",
                                  .lifetime = {.kind = LifetimeKind::kPerSequence, .copies = 1},
                                  .parts = 3,
                                  .blocks_per_parent = 3}},
                      /*parents=*/40, /*max_requests=*/64, /*context_tokens=*/64);
}

// Placement by linear search over every block of the arena.
class NaivePools {
 public:
  explicit NaivePools(const Plan& plan) : plan_(plan), owner_(Size(plan.parents)), last_(Size(plan.parents)) {
    for (const PlanPool& pool : plan.pools)
      used_.emplace_back(Size(plan.parents * pool.blocks_per_parent), false);
  }

  // The lowest free block of the pool's parents, else the first of the lowest free parent; -1 if there is
  // none.
  std::int64_t Take(std::size_t pool) {
    const std::int64_t k = plan_.pools[pool].blocks_per_parent;
    for (std::int64_t block = k; block < plan_.parents * k; ++block) {
      if (owner_[Size(block / k)] == pool && !used_[pool][Size(block)]) return Mark(pool, block);
    }
    for (std::int64_t parent = 1; parent < plan_.parents; ++parent) {
      if (owner_[Size(parent)].has_value()) continue;
      if (last_[Size(parent)].has_value() && last_[Size(parent)] != pool) zero_.push_back(parent);
      owner_[Size(parent)] = pool;
      last_[Size(parent)] = pool;
      return Mark(pool, parent * k);
    }
    return -1;
  }

  void Free(std::size_t pool, std::int64_t block) {
    const std::int64_t k = plan_.pools[pool].blocks_per_parent;
    used_[pool][Size(block)] = false;
    const std::int64_t parent = block / k;
    for (std::int64_t b = parent * k; b < (parent + 1) * k; ++b) {
      if (used_[pool][Size(b)]) return;
    }
    owner_[Size(parent)].reset();
  }

  [[nodiscard]] std::int64_t free_parents() const {
    std::int64_t count = 0;
    for (std::int64_t parent = 1; parent < plan_.parents; ++parent) count += owner_[Size(parent)] ? 0 : 1;
    return count;
  }
  std::vector<std::int64_t> TakeZero() {
    std::sort(zero_.begin(), zero_.end());
    zero_.erase(std::unique(zero_.begin(), zero_.end()), zero_.end());
    return std::exchange(zero_, {});
  }

 private:
  static std::size_t Size(std::int64_t n) { return static_cast<std::size_t>(n); }
  std::int64_t Mark(std::size_t pool, std::int64_t block) {
    used_[pool][Size(block)] = true;
    return block;
  }

  const Plan& plan_;
  std::vector<std::optional<std::size_t>> owner_;
  std::vector<std::optional<std::size_t>> last_;
  std::vector<std::vector<bool>> used_;
  std::vector<std::int64_t> zero_;
};

// The bytes of an arena; a block is filled with its owner's pattern from first byte to stride.
class GuardedArena {
 public:
  explicit GuardedArena(const Plan& plan)
      : plan_(plan), bytes_(static_cast<std::size_t>(plan.arena_bytes.value()), 0) {}

  void Fill(std::size_t pool, BlockId block, std::int64_t owner) {
    std::memset(At(pool, block), Pattern(pool, owner), Stride(pool));
  }
  [[nodiscard]] bool Intact(std::size_t pool, BlockId block, std::int64_t owner) {
    const std::uint8_t* at = At(pool, block);
    const std::uint8_t want = Pattern(pool, owner);
    return std::all_of(at, at + Stride(pool), [want](std::uint8_t b) { return b == want; });
  }
  [[nodiscard]] bool NullParentUntouched() const {
    return std::all_of(bytes_.begin(), bytes_.begin() + plan_.parent_bytes.value(),
                       [](std::uint8_t b) { return b == 0; });
  }

 private:
  [[nodiscard]] std::size_t Stride(std::size_t pool) const {
    return static_cast<std::size_t>(plan_.pools[pool].stride_bytes);
  }
  std::uint8_t* At(std::size_t pool, BlockId block) {
    return bytes_.data() + block.value() * plan_.pools[pool].stride_bytes;
  }
  static std::uint8_t Pattern(std::size_t pool, std::int64_t owner) {
    return static_cast<std::uint8_t>(1 + (owner * 7 + static_cast<std::int64_t>(pool)) % 255);
  }

  const Plan& plan_;
  std::vector<std::uint8_t> bytes_;
};

// Returns a digest of every id given out.
std::uint64_t Churn(std::uint64_t seed) {
  const Plan plan = MixedPlan();
  BlockPools pools(plan);
  NaivePools naive(plan);
  GuardedArena arena(plan);
  SeededRandom random(seed);
  std::map<std::int64_t, std::vector<std::vector<BlockId>>> live;
  std::uint64_t digest = seed;
  std::int64_t refused = 0;
  for (std::int64_t joined = 0; joined < kSequences;) {
    if (random.Below(100) < 55) {
      const std::vector<std::int64_t> counts = {1 + random.Below(12), random.Below(5), random.Below(2) * 3};
      const auto blocks = pools.Allocate(counts);
      if (!blocks.ok()) {
        EXPECT_EQ(blocks.status().code(), absl::StatusCode::kResourceExhausted);
        ++refused;
      } else {
        for (std::size_t pool = 0; pool < blocks->size(); ++pool) {
          EXPECT_EQ(static_cast<std::int64_t>((*blocks)[pool].size()), counts[pool]);
          std::vector<BlockId> want;
          want.reserve(static_cast<std::size_t>(counts[pool]));
          for (std::int64_t i = 0; i < counts[pool]; ++i) want.emplace_back(naive.Take(pool));
          std::sort(want.begin(), want.end());
          EXPECT_EQ((*blocks)[pool], want);
          for (const BlockId block : (*blocks)[pool]) {
            EXPECT_TRUE(BlockRangeOf(plan, plan.pools[pool]).Contains(block));
            arena.Fill(pool, block, joined);
            digest = digest * 1099511628211U + static_cast<std::uint64_t>(block.value());
          }
        }
        live[joined++] = *blocks;
      }
    } else if (!live.empty()) {
      auto leaver = live.begin();
      std::advance(leaver, random.Below(static_cast<std::int64_t>(live.size())));
      for (std::size_t pool = 0; pool < leaver->second.size(); ++pool) {
        for (const BlockId block : leaver->second[pool]) {
          EXPECT_TRUE(arena.Intact(pool, block, leaver->first)) << "sequence " << leaver->first;
          naive.Free(pool, block.value());
        }
        pools.Free(PoolId(static_cast<std::int32_t>(pool)), leaver->second[pool]);
      }
      live.erase(leaver);
    }
    if (random.Below(8) == 0) {
      std::vector<std::int64_t> zero;
      for (const ParentId parent : pools.TakeParentsToZero()) zero.push_back(parent.value());
      EXPECT_EQ(zero, naive.TakeZero());
    }
    EXPECT_EQ(pools.free_parents(), naive.free_parents());
    if (::testing::Test::HasFailure()) return 0;
  }
  EXPECT_GT(refused, 100);  // the arena was full often enough
  for (const auto& [id, blocks] : live) {
    for (std::size_t pool = 0; pool < blocks.size(); ++pool) {
      for (const BlockId block : blocks[pool]) EXPECT_TRUE(arena.Intact(pool, block, id));
      pools.Free(PoolId(static_cast<std::int32_t>(pool)), blocks[pool]);
    }
  }
  EXPECT_TRUE(arena.NullParentUntouched());
  EXPECT_EQ(pools.free_parents(), plan.parents - 1);
  return digest;
}

TEST(BlockChurnTest, TenThousandSequencesNeverMeet) {
  const std::uint64_t digest = Churn(1);
  EXPECT_EQ(Churn(1), digest);  // deterministic
  EXPECT_NE(Churn(2), digest);
}

// What stands in each slot of a token pool: whose token, at which position.
struct SlotContent {
  std::int64_t sequence = -1;
  std::int64_t position = -1;
  friend bool operator==(const SlotContent&, const SlotContent&) = default;
};

// Runs the steps of a scheduler over slots instead of a model: every row writes its token's identity, and
// every token that a step may look at must be its sequence's own.
class SlotWorld {
 public:
  explicit SlotWorld(const Plan& plan) : plan_(plan) {
    for (const PlanPool& pool : plan.pools) {
      slots_.emplace_back(
          static_cast<std::size_t>(plan.parents * pool.blocks_per_parent * pool.block_tokens));
    }
  }

  void Run(const StepPlan& step) {
    KVASIR_ASSERT_OK(CheckStep(plan_, kSmallVocab, step));
    for (const ParentId parent : step.zero_parents) Zero(parent.value());
    if (step.move.has_value()) Move(*step.move);
    for (const StepSequence& part : step.sequences) {
      const std::int64_t rows =
          step.kind == StepKind::kPrefill     ? static_cast<std::int64_t>(part.tokens.size())
          : step.kind == StepKind::kSpeculate ? 1 + DraftedTokens(part, plan_.draft_tokens)
                                              : 1;
      for (std::size_t pool = 0; pool < plan_.pools.size(); ++pool) {
        if (plan_.pools[pool].block_tokens == 0) continue;
        const std::int64_t window = plan_.pools[pool].lifetime.window;
        const std::int64_t oldest = window == 0 ? 0 : std::max<std::int64_t>(0, part.committed - window + 1);
        for (std::int64_t p = oldest; p < part.committed; ++p) {
          ASSERT_EQ(At(pool, part, p), (SlotContent{part.id.value(), p}));
        }
        for (std::int64_t p = part.committed; p < part.committed + rows; ++p) {
          At(pool, part, p) = SlotContent{part.id.value(), p};
        }
      }
    }
  }

  [[nodiscard]] std::int64_t moves() const { return moves_; }

 private:
  SlotContent& At(std::size_t pool, const StepSequence& part, std::int64_t position) {
    const std::int64_t tokens = plan_.pools[pool].block_tokens;
    const BlockId block = part.blocks[pool][static_cast<std::size_t>(position / tokens)];
    return slots_[pool][static_cast<std::size_t>(block.value() * tokens + position % tokens)];
  }
  void Zero(std::int64_t parent) {
    for (std::size_t pool = 0; pool < slots_.size(); ++pool) {
      const std::int64_t count = plan_.pools[pool].blocks_per_parent * plan_.pools[pool].block_tokens;
      std::fill_n(slots_[pool].begin() + parent * count, count, SlotContent{});
    }
  }

  void Move(const ParentMove& move) {
    ++moves_;
    const auto pool = static_cast<std::size_t>(move.pool.value());
    const std::int64_t tokens = plan_.pools[pool].block_tokens;
    for (const ParentMove::Block& block : move.blocks) {
      const auto from = slots_[pool].begin() + block.from.value() * tokens;
      std::copy(from, from + tokens, slots_[pool].begin() + block.to.value() * tokens);
      std::fill(from, from + tokens, SlotContent{});
    }
  }

  const Plan& plan_;
  std::vector<std::vector<SlotContent>> slots_;  // [pool][slot]
  std::int64_t moves_ = 0;
};

StepOutcome RandomOutcome(const Plan& plan, const StepPlan& step, SeededRandom& random) {
  StepOutcome outcome{.step = step.step};
  for (const StepSequence& part : step.sequences) {
    SequenceOutcome its{.id = part.id};
    if (step.kind == StepKind::kSpeculate) {
      its.drafted = DraftedTokens(part, plan.draft_tokens);
      its.accepted = random.Below(its.drafted + 1);
    }
    if (step.kind != StepKind::kPrefill || part.last_chunk) {
      for (std::int64_t i = 0; i <= its.accepted; ++i) {
        its.emitted.push_back(static_cast<std::int32_t>(random.Below(kSmallVocab)));
      }
    }
    outcome.sequences.push_back(its);
  }
  return outcome;
}

void ChurnScheduler(const Plan& plan, std::int64_t sequences) {
  auto scheduler = *Scheduler::Create(plan, "plan", Epoch(1), kSmallVocab);
  const std::int64_t free = scheduler->free_parents();
  SlotWorld world(plan);
  SeededRandom random(11);
  std::vector<SequenceId> ids;
  std::int64_t joined = 0;
  std::int64_t finished = 0;
  std::int64_t cancelled = 0;
  while (joined < sequences || scheduler->running() > 0) {
    if (joined < sequences) {
      const auto prompt = static_cast<std::size_t>(1 + random.Below(20));
      const SequenceRequest request = {.prompt = std::vector<std::int32_t>(prompt, 1),
                                       .max_tokens = 1 + random.Below(12),
                                       .stop_tokens = {7},
                                       .speculate = random.Below(4) != 0};
      const auto id = scheduler->Join(request);
      if (id.ok()) {
        ids.push_back(*id);
        ++joined;
      } else {
        ASSERT_EQ(id.status().code(), absl::StatusCode::kResourceExhausted) << id.status();
        scheduler->MakeRoomFor(request);
      }
    }
    const std::optional<StepPlan> step = scheduler->NextStep();
    if (!step.has_value()) continue;
    ASSERT_NO_FATAL_FAILURE(world.Run(*step));
    // Now and then a client leaves, or the step fails, while it runs.
    if (random.Below(20) == 0 && !ids.empty()) {
      cancelled += scheduler
                           ->Cancel(ids[ids.size() - 1 -
                                        static_cast<std::size_t>(random.Below(std::min<std::int64_t>(
                                            8, static_cast<std::int64_t>(ids.size()))))])
                           .ok()
                       ? 1
                       : 0;
    }
    if (random.Below(200) == 0) {
      cancelled += static_cast<std::int64_t>(scheduler->FailStep().size());
      continue;
    }
    const auto progress = scheduler->Apply(RandomOutcome(plan, *step, random));
    KVASIR_ASSERT_OK(progress);
    for (const SequenceProgress& its : *progress) finished += its.finished ? 1 : 0;
  }
  EXPECT_EQ(finished + cancelled, sequences);
  EXPECT_GT(cancelled, sequences / 100);
  EXPECT_GT(world.moves(), sequences / 100);
  // A window's chunk reserve may have moved to other parents; the next sequence gathers it again.
  EXPECT_GE(scheduler->free_parents(), free - 3);
  const auto last = scheduler->Join({.prompt = {1}, .max_tokens = 20});
  KVASIR_ASSERT_OK(last);
  KVASIR_ASSERT_OK(scheduler->Cancel(*last));
  EXPECT_EQ(scheduler->free_parents(), free);
}

TEST(BlockChurnTest, TheSchedulersTablesHoldEachSequencesOwnTokens) {
  ChurnScheduler(MakeEnginePlan({.parents = 24, .max_requests = 8, .one_pool = false}), kSequences);
}

TEST(BlockChurnTest, AlsoBesideWindowsAndStates) { ChurnScheduler(MixedPlan(), kSequences); }

}  // namespace
}  // namespace kvasir
