// The search for sizes against a slow and obvious one: every block, every k, every P that is a multiple of
// 256.
#include "planner/rulesets/native/size_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <vector>

namespace kvasir::native {
namespace {

// All choices of one block and one k per pool for a given P, best first by the same order as the search's.
void TryAll(const SearchProblem& problem, std::int64_t parent, std::vector<PoolSize>& sizes,
            std::optional<SizeSolution>& best) {
  const std::size_t place = sizes.size();
  if (place < problem.pools.size()) {
    const SearchPool& pool = problem.pools[place];
    for (std::size_t b = 0; b < pool.blocks.size(); ++b) {
      for (std::int64_t k = 1; k * pool.blocks[b].stride_min <= parent; ++k) {
        if (parent % (k * pool.unit_bytes) != 0) continue;
        sizes.push_back({.block = b, .blocks_per_parent = k});
        TryAll(problem, parent, sizes, best);
        sizes.pop_back();
      }
    }
    return;
  }
  std::int64_t parents = 1;
  std::array<std::int64_t, 3> bytes = {};
  SizeKey key;
  key.parent_bytes = parent;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const SearchBlock& block = problem.pools[i].blocks[sizes[i].block];
    const std::int64_t k = sizes[i].blocks_per_parent;
    parents += (block.blocks_needed + k - 1) / k;
    for (std::size_t c = 0; c < 3; ++c) bytes[c] += block.blocks[c] * (parent / k);
    key.negated_block_tokens.push_back(-block.block_tokens);
    key.parts.push_back(block.parts);
    key.negated_blocks_per_parent.push_back(-k);
  }
  if (parents * parent > problem.arena_bytes) return;
  for (std::size_t c = 0; c < 3; ++c) {
    key.cost_512 = std::max(key.cost_512, Cost512(bytes[c], problem.payload[c], problem.arena_bytes, parent,
                                                  static_cast<std::int64_t>(sizes.size())));
  }
  key.middle_bytes = bytes[1];
  if (!best.has_value() || key < best->key) best = SizeSolution{.key = key, .pools = sizes, .compared = 0};
}

std::optional<SizeSolution> BruteForce(const SearchProblem& problem) {
  std::optional<SizeSolution> best;
  for (std::int64_t parent = 256; parent <= problem.parent_bytes_max; parent += 256) {
    std::vector<PoolSize> sizes;
    TryAll(problem, parent, sizes, best);
  }
  return best;
}

SearchProblem RandomProblem(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  SearchProblem problem;
  const std::int64_t pools = pick(1, 3);
  std::array<std::int64_t, 3> payload = {};
  for (std::int64_t p = 0; p < pools; ++p) {
    SearchPool& pool = problem.pools.emplace_back();
    pool.unit_bytes = pick(0, 4) == 0 ? 768 : 256;
    const std::int64_t candidates = pick(1, 3);
    const std::int64_t page = pick(1, 9) * 100;
    for (std::int64_t b = 0; b < candidates; ++b) {
      SearchBlock block;
      const std::int64_t tokens = std::int64_t{16} << b;
      block.block_tokens = pick(0, 3) == 0 ? 0 : tokens;
      block.parts = block.block_tokens == 0 ? candidates - b : 1;
      block.stride_min = (page * (b + 1) + pool.unit_bytes - 1) / pool.unit_bytes * pool.unit_bytes;
      for (std::size_t c = 0; c < 3; ++c) {
        block.blocks[c] = block.block_tokens == 0
                              ? block.parts * 2
                              : (200 * (1 + 3 * static_cast<std::int64_t>(c)) + tokens - 1) / tokens;
      }
      block.blocks_needed = block.blocks[2] + pick(0, 3);
      pool.blocks.push_back(block);
    }
    for (std::size_t c = 0; c < 3; ++c) payload[c] += page * (1 + static_cast<std::int64_t>(c));
  }
  problem.payload = payload;
  problem.arena_bytes = pick(20, 4000) * 1000;
  problem.parent_bytes_max = pick(4, 60) * 256;
  return problem;
}

TEST(SizeSearch, FindsWhatBruteForceFinds) {
  int solved = 0;
  int unsolved = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const SearchProblem problem = RandomProblem(seed);
    const std::optional<SizeSolution> fast = FindSizes(problem);
    const std::optional<SizeSolution> slow = BruteForce(problem);
    ASSERT_EQ(fast.has_value(), slow.has_value()) << "seed " << seed;
    ASSERT_EQ(FindAnySizes(problem).has_value(), slow.has_value()) << "seed " << seed;
    if (!slow.has_value()) {
      ++unsolved;
      continue;
    }
    ++solved;
    ASSERT_EQ(fast->key, slow->key) << "seed " << seed;
    ASSERT_EQ(fast->pools, slow->pools) << "seed " << seed;
  }
  EXPECT_GT(solved, 200);
  EXPECT_GT(unsolved, 2);
}

// All problems of two pools with one small block each.
TEST(SizeSearch, FindsItOnAllSmallProblems) {
  for (std::int64_t a = 1; a <= 5; ++a) {
    for (std::int64_t b = 1; b <= 5; ++b) {
      for (std::int64_t arena = 2; arena <= 40; arena += 3) {
        SearchProblem problem;
        problem.arena_bytes = arena * 256;
        problem.parent_bytes_max = std::max<std::int64_t>({a * 256, b * 256, arena * 64});
        problem.payload = {200, 400, 600};
        for (const std::int64_t units : {a, b}) {
          SearchBlock block{.block_tokens = 16, .parts = 1, .stride_min = units * 256};
          block.blocks = {1, 2, 3};
          block.blocks_needed = 3;
          problem.pools.push_back({.unit_bytes = 256, .blocks = {block}});
        }
        const std::optional<SizeSolution> fast = FindSizes(problem);
        const std::optional<SizeSolution> slow = BruteForce(problem);
        ASSERT_EQ(fast.has_value(), slow.has_value());
        if (!slow.has_value()) continue;
        ASSERT_EQ(fast->key, slow->key);
      }
    }
  }
}

TEST(Cost512Test, IsTheStatedFormula) {
  // 512 * 1000 * 2 A / (1000 * (2 A - 4 P)) with A = 100 P is 512 * 200 / 196, rounded up.
  EXPECT_EQ(Cost512(1000, 1000, 100 * 256, 256, 2), 523);
  EXPECT_EQ(Cost512(1000, 1000, std::int64_t{1} << 50, 1, 1), 513) << "rounded up, however little is lost";
  EXPECT_EQ(Cost512(1000, 500, 100 * 256, 256, 2), 1045);
  EXPECT_EQ(Cost512(1, 1, 256, 256, 2), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace kvasir::native
