// A mixture of experts. Every row is routed by itself and its experts are added up in ascending order, so its
// bits depend on its own values and the weights alone; the loops run expert by expert over the rows that
// chose it, so that an expert's weights are read once for all of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/cpu/cpu_kernels.h"
#include "worker/cpu/gated.h"
#include "worker/cpu/lanes.h"

namespace kvasir::cpu {
namespace {

// One row's scores, reused from row to row.
struct RowScores {
  std::vector<float> score;   // of each expert
  std::vector<float> choice;  // what experts are chosen by
  std::vector<float> group;   // what each group counts
  std::vector<char> taken;    // experts or groups that are marked
};

void Score(const RouteExpertsOp& op, const float* logits, RowScores& row) {
  if (op.score == ScoreFunction::kSigmoid) {
    for (std::int64_t e = 0; e < op.experts; ++e) row.score[static_cast<std::size_t>(e)] = Sigmoid(logits[e]);
  } else {
    const float largest = *std::max_element(logits, logits + op.experts);
    float sum = 0;
    for (std::int64_t e = 0; e < op.experts; ++e) {
      sum += row.score[static_cast<std::size_t>(e)] = std::exp(logits[e] - largest);
    }
    for (float& score : row.score) score /= sum;
  }
  for (std::int64_t e = 0; e < op.experts; ++e) {
    const std::size_t i = static_cast<std::size_t>(e);
    row.choice[i] = op.bias == nullptr ? row.score[i] : row.score[i] + op.bias[e];
  }
}

// Marks the `picks` largest values, of equals the lowest index first.
void MarkLargest(const std::vector<float>& values, std::int64_t picks, std::vector<char>& taken) {
  taken.assign(values.size(), 0);
  for (std::int64_t pick = 0; pick < picks; ++pick) {
    std::size_t best = values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (taken[i] == 0 && (best == values.size() || values[i] > values[best])) best = i;
    }
    taken[best] = 1;
  }
}

// Nothing outside the groups that are kept can be chosen any more.
void KeepBestGroups(const RouteExpertsOp& op, RowScores& row) {
  if (op.groups == op.groups_kept) return;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const std::size_t size = static_cast<std::size_t>(op.experts / op.groups);
  for (std::size_t g = 0; g < row.group.size(); ++g) {
    float first = kNone;
    float second = kNone;
    for (std::size_t i = g * size; i < (g + 1) * size; ++i) {
      second = std::max(second, std::min(first, row.choice[i]));
      first = std::max(first, row.choice[i]);
    }
    row.group[g] = op.bias == nullptr ? first : first + second;
  }
  MarkLargest(row.group, op.groups_kept, row.taken);
  for (std::size_t i = 0; i < row.choice.size(); ++i) {
    if (row.taken[i / size] == 0) row.choice[i] = kNone;
  }
}

void Choose(const RouteExpertsOp& op, RowScores& row, std::int32_t* ids, float* weights) {
  if (std::any_of(row.choice.begin(), row.choice.end(), [](float c) { return std::isnan(c); })) {
    *op.fault = 1;
    for (std::int64_t j = 0; j < op.chosen; ++j) {
      ids[j] = static_cast<std::int32_t>(j);
      weights[j] = 0;
    }
    return;
  }
  KeepBestGroups(op, row);
  MarkLargest(row.choice, op.chosen, row.taken);
  float sum = 0;
  std::int64_t j = 0;
  for (std::size_t e = 0; e < row.score.size(); ++e) {
    if (row.taken[e] == 0) continue;
    ids[j] = static_cast<std::int32_t>(e);
    weights[j++] = row.score[e];
    sum += row.score[e];
  }
  for (j = 0; j < op.chosen; ++j) {
    if (op.normalise) weights[j] /= sum + 1e-20F;
    weights[j] *= op.scale;
  }
}

// A row that chose an expert, and the weight that it gives to it.
struct Share {
  std::int64_t row;
  float weight;
};

void FindShares(const ExpertMlpOp& op, std::int64_t expert, std::vector<Share>& shares) {
  shares.clear();
  for (std::int64_t r = 0; r < op.rows; ++r) {
    const std::int32_t* ids = op.ids + r * op.chosen;
    const std::int32_t* found = std::find(ids, ids + op.chosen, static_cast<std::int32_t>(expert));
    if (found != ids + op.chosen) shares.push_back({r, op.weights[r * op.chosen + (found - ids)]});
  }
}

}  // namespace

void RouteExperts(const RouteExpertsOp& op) {
  const std::size_t experts = static_cast<std::size_t>(op.experts);
  RowScores row{.score = std::vector<float>(experts),
                .choice = std::vector<float>(experts),
                .group = std::vector<float>(static_cast<std::size_t>(op.groups)),
                .taken = {}};
  for (std::int64_t r = 0; r < op.rows; ++r) {
    Score(op, op.logits + r * op.experts, row);
    Choose(op, row, op.ids + r * op.chosen, op.weights + r * op.chosen);
  }
}

void ExpertMlp(const ExpertMlpOp& op) {
  std::fill(op.out, op.out + op.rows * op.dim, 0.0F);
  std::vector<Share> shares;
  for (std::int64_t e = 0; e < op.experts; ++e) {
    FindShares(op, e, shares);
    if (shares.empty()) continue;
    const std::int64_t matrix = e * op.width * op.dim;
    for (std::int64_t n = 0; n < op.width; ++n) {
      const float* gate = op.gate + matrix + n * op.dim;
      const float* up = op.up + matrix + n * op.dim;
      for (const Share& share : shares) {
        const float* in = op.in + share.row * op.dim;
        op.inner[share.row * op.width + n] =
            Gated(op.activation, DotLanes(in, gate, op.dim), DotLanes(in, up, op.dim));
      }
    }
    for (std::int64_t n = 0; n < op.dim; ++n) {
      const float* down = op.down + matrix + n * op.width;
      for (const Share& share : shares) {
        const float* inner = op.inner + share.row * op.width;
        op.out[share.row * op.dim + n] += share.weight * DotLanes(inner, down, op.width);
      }
    }
  }
}

}  // namespace kvasir::cpu
