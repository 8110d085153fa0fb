// The recurrent operations as their formulas say them, in double. Only what the operations define as rounded
// or stored is narrower.
#include <cmath>
#include <vector>

#include "worker/cpu/cache_row.h"
#include "worker/cpu/recurrent.h"

namespace kvasir::cpu {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double D(float x) { return static_cast<double>(x); }

// Element `at` of a tensor that starts at `base`.
double Load(const std::byte* base, DType dtype, std::int64_t at) {
  float value = 0;
  LoadRow(base + at * DTypeBytes(dtype), dtype, 1, &value);
  return D(value);
}

void Store(double value, DType dtype, std::byte* base, std::int64_t at) {
  const float narrow = static_cast<float>(value);
  StoreRow(&narrow, dtype, 1, base + at * DTypeBytes(dtype));
}

double Rounded(double value, DType dtype) { return D(cpu::Rounded(static_cast<float>(value), dtype)); }

using State = std::vector<std::vector<double>>;  // [key][value]
using Vector = std::vector<double>;

struct Row {
  Vector decay, key, value;
  double beta = 0;
  DType dtype = DType::kF32;  // that keys and updates are rounded to
};

// sum_d S[d][e] x[d]
double Read(const State& s, const Vector& x, std::size_t e) {
  double sum = 0;
  for (std::size_t d = 0; d < s.size(); ++d) sum += s[d][e] * x[d];
  return sum;
}

void TakeIn(const Row& row, State& s) {
  Vector key = row.key;
  for (double& x : key) x = Rounded(x, row.dtype);
  for (std::size_t d = 0; d < s.size(); ++d) {
    for (double& value : s[d]) value *= row.decay[d];
  }
  for (std::size_t e = 0; e < s.size(); ++e) {
    const double update = Rounded(row.beta * (row.value[e] - Read(s, key, e)), row.dtype);
    for (std::size_t d = 0; d < s.size(); ++d) s[d][e] += key[d] * update;
  }
}

// Where one head of one request lies.
struct Place {
  std::byte* arena;
  const std::int64_t* table;
  StateGeometry state, decay, beta;
  std::int64_t heads, head, dim;

  [[nodiscard]] std::byte* At(const StateGeometry& g, std::int64_t copy) const {
    return arena + StateOffset(g, table, copy);
  }
  [[nodiscard]] std::int64_t StateElement(std::size_t d, std::size_t e) const {
    return (head * dim + static_cast<std::int64_t>(d)) * dim + static_cast<std::int64_t>(e);
  }
  [[nodiscard]] std::int64_t RingElement(std::int64_t row, std::size_t d) const {
    return (row * heads + head) * dim + static_cast<std::int64_t>(d);
  }

  void LoadState(std::int64_t copy, State& s) const {
    for (std::size_t d = 0; d < s.size(); ++d) {
      for (std::size_t e = 0; e < s.size(); ++e)
        s[d][e] = Load(At(state, copy), DType::kF32, StateElement(d, e));
    }
  }
  void StoreState(const State& s, std::int64_t copy) const {
    for (std::size_t d = 0; d < s.size(); ++d) {
      for (std::size_t e = 0; e < s.size(); ++e)
        Store(s[d][e], DType::kF32, At(state, copy), StateElement(d, e));
    }
  }
  void LoadRing(std::int64_t i, Row& row) const {
    for (std::size_t d = 0; d < row.decay.size(); ++d)
      row.decay[d] = Load(At(decay, 0), DType::kF32, RingElement(i, d));
    row.beta = Load(At(beta, 0), DType::kF32, i * heads + head);
  }
  void StoreRing(const Row& row, std::int64_t i) const {
    for (std::size_t d = 0; d < row.decay.size(); ++d)
      Store(row.decay[d], DType::kF32, At(decay, 0), RingElement(i, d));
    Store(row.beta, DType::kF32, At(beta, 0), i * heads + head);
  }
};

// The channel of a token whose inputs stand in the history: convolved and activated.
double Activated(const KdaReplayOp& op, const std::byte* history, const float* weight, std::int64_t begin,
                 std::int64_t channel, std::int64_t position) {
  double sum = 0;
  for (std::int64_t j = 0; j < op.kernel && j <= position; ++j) {
    const std::int64_t token = position - j;
    sum += D(weight[(channel + 1) * op.kernel - 1 - j]) *
           Load(history, op.dtype, token % op.history * op.history_stride + begin + channel);
  }
  return sum * Sigmoid(sum);
}

void ReplayRow(const KdaReplayOp& op, const Place& at, std::int64_t i, std::int64_t position, Row& row,
               State& s) {
  const std::byte* history = at.At(op.conv, 0);
  double squares = static_cast<double>(op.eps);
  for (std::size_t d = 0; d < row.key.size(); ++d) {
    const std::int64_t channel = at.head * op.dim + static_cast<std::int64_t>(d);
    row.key[d] = Activated(op, history, op.k_weight, op.k_begin, channel, position);
    row.value[d] = Activated(op, history, op.v_weight, op.v_begin, channel, position);
    squares += row.key[d] * row.key[d];
  }
  for (double& x : row.key) x /= std::sqrt(squares);
  at.LoadRing(i, row);
  TakeIn(row, s);
}

void RunRow(const KdaStepOp& op, const Place& at, std::int64_t r, State& s, Row& row) {
  const std::int64_t index = r * op.heads + at.head;
  const std::int64_t begin = r * op.row_stride + at.head * op.dim;
  Vector query(s.size());
  for (std::size_t d = 0; d < s.size(); ++d) {
    const auto lane = static_cast<std::int64_t>(d);
    query[d] = D(op.q[begin + lane]);
    row.key[d] = D(op.k[begin + lane]);
    row.value[d] = D(op.v[begin + lane]);
    row.decay[d] = D(op.decay[index * op.dim + lane]);
  }
  row.beta = D(op.beta[index]);
  TakeIn(row, s);
  for (std::size_t e = 0; e < s.size(); ++e) {
    const double out = Read(s, query, e);
    op.out[index * op.dim + static_cast<std::int64_t>(e)] = static_cast<float>(out);
    if (!std::isfinite(static_cast<float>(out))) *op.fault = 1;
  }
}

void RunHead(const KdaStepOp& op, const Place& at, std::int64_t request) {
  const auto dim = static_cast<std::size_t>(op.dim);
  State s(dim, Vector(dim, 0.0));
  Row row{Vector(dim), Vector(dim), Vector(dim), 0, op.dtype};
  bool begun = false;
  for (std::int64_t i = 0; i < op.query_rows; ++i) {
    const std::int64_t r = request * op.query_rows + i;
    for (std::int64_t e = 0; e < op.dim; ++e) op.out[(r * op.heads + at.head) * op.dim + e] = 0;
    if (op.bounds[r] == 0) continue;
    if (!begun && op.reads[request] >= 0) at.LoadState(op.reads[request], s);
    begun = true;
    RunRow(op, at, r, s, row);
    if (op.keeps_rows && i > 0) at.StoreRing(row, i - 1);
    if (op.writes[r] >= 0) at.StoreState(s, op.writes[r]);
  }
}

template <class Op>
Place PlaceOf(const Op& op, std::int64_t request, std::int64_t head) {
  return {op.arena,     op.block_table + request * op.table_width,
          op.state,     op.ring_decay,
          op.ring_beta, op.heads,
          head,         op.dim};
}

}  // namespace

void ReferenceShortConv(const ShortConvOp& op) {
  for (std::int64_t r = 0; r < op.requests * op.query_rows; ++r) {
    const std::int64_t* table = op.block_table + r / op.query_rows * op.table_width;
    const std::int64_t position = op.bounds[r] - 1;
    for (std::int64_t c = 0; c < op.channels; ++c) {
      float& x = op.x[r * op.row_stride + c];
      if (position < 0) {
        x = 0;
        continue;
      }
      std::byte* history = op.arena + StateOffset(op.state, table, 0);
      const auto element = [&](std::int64_t token) {
        return token % op.history * op.history_stride + op.history_begin + c;
      };
      // Its own input first: the oldest token of a full history gives way only after it was read.
      const double own = Rounded(D(x), op.dtype);
      double sum = D(op.weight[(c + 1) * op.kernel - 1]) * own;
      for (std::int64_t j = 1; j < op.kernel && j <= position; ++j) {
        sum += D(op.weight[(c + 1) * op.kernel - 1 - j]) * Load(history, op.dtype, element(position - j));
      }
      Store(own, op.dtype, history, element(position));
      x = static_cast<float>(sum * Sigmoid(sum));
    }
  }
}

void ReferenceKdaGate(const KdaGateOp& op) {
  for (std::int64_t i = 0; i < op.rows * op.heads * op.dim; ++i) {
    const double rate = std::exp(D(op.a_log[i / op.dim % op.heads]));
    const double f = D(op.decay[i]) + D(op.dt_bias[i % (op.heads * op.dim)]);
    const double softplus = f > 30 ? f : std::log1p(std::exp(f));
    const double g = op.lower_bound < 0 ? D(op.lower_bound) * Sigmoid(rate * f) : -rate * softplus;
    op.decay[i] = static_cast<float>(std::exp(g));
  }
  for (std::int64_t i = 0; i < op.rows * op.heads; ++i)
    op.beta[i] = static_cast<float>(Sigmoid(D(op.beta[i])));
}

void ReferenceKdaReplay(const KdaReplayOp& op) {
  const auto dim = static_cast<std::size_t>(op.dim);
  for (std::int64_t request = 0; request < op.requests; ++request) {
    const std::int64_t rows = op.replays[request];
    const std::int64_t bound = op.bounds[request * op.query_rows];
    if (rows == 0 || bound == 0) continue;
    for (std::int64_t head = 0; head < op.heads; ++head) {
      const Place at = PlaceOf(op, request, head);
      State s(dim, Vector(dim, 0.0));
      Row row{Vector(dim), Vector(dim), Vector(dim), 0, op.dtype};
      if (op.reads[request] >= 0) at.LoadState(0, s);
      for (std::int64_t i = 0; i < rows; ++i) ReplayRow(op, at, i, bound - 1 - rows + i, row, s);
      at.StoreState(s, 0);
    }
  }
}

void ReferenceKdaStep(const KdaStepOp& op) {
  for (std::int64_t request = 0; request < op.requests; ++request) {
    for (std::int64_t head = 0; head < op.heads; ++head) RunHead(op, PlaceOf(op, request, head), request);
  }
}

}  // namespace kvasir::cpu
