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
  Vector decay, key, update;
};

void TakeIn(const Row& row, State& s) {
  for (std::size_t d = 0; d < s.size(); ++d) {
    for (std::size_t e = 0; e < s.size(); ++e) s[d][e] = row.decay[d] * s[d][e] + row.key[d] * row.update[e];
  }
}

// One head of one request and where it lies.
struct Place {
  const KdaStepOp& op;
  std::int64_t request, head;

  [[nodiscard]] const std::int64_t* table() const { return op.block_table + request * op.table_width; }
  [[nodiscard]] std::byte* At(const StateGeometry& g, std::int64_t copy) const {
    return op.arena + StateOffset(g, table(), copy);
  }
  [[nodiscard]] std::int64_t StateElement(std::size_t d, std::size_t e) const {
    return (head * op.dim + static_cast<std::int64_t>(d)) * op.dim + static_cast<std::int64_t>(e);
  }
  [[nodiscard]] std::int64_t RingElement(std::int64_t row, std::size_t d) const {
    return (row * op.heads + head) * op.dim + static_cast<std::int64_t>(d);
  }

  void LoadState(std::int64_t copy, State& s) const {
    for (std::size_t d = 0; d < s.size(); ++d) {
      for (std::size_t e = 0; e < s.size(); ++e) {
        s[d][e] = Load(At(op.state, copy), DType::kF32, StateElement(d, e));
      }
    }
  }
  void StoreState(const State& s, std::int64_t copy) const {
    for (std::size_t d = 0; d < s.size(); ++d) {
      for (std::size_t e = 0; e < s.size(); ++e) {
        Store(s[d][e], DType::kF32, At(op.state, copy), StateElement(d, e));
      }
    }
  }
  void LoadRing(std::int64_t i, Row& row) const {
    for (std::size_t d = 0; d < row.key.size(); ++d) {
      row.decay[d] = Load(At(op.ring_decay, 0), DType::kF32, RingElement(i, d));
      row.key[d] = Load(At(op.ring_update, 0), op.dtype, RingElement(2 * i, d));
      row.update[d] = Load(At(op.ring_update, 0), op.dtype, RingElement(2 * i + 1, d));
    }
  }
  void StoreRing(const Row& row, std::int64_t i) const {
    for (std::size_t d = 0; d < row.key.size(); ++d) {
      Store(row.decay[d], DType::kF32, At(op.ring_decay, 0), RingElement(i, d));
      Store(row.key[d], op.dtype, At(op.ring_update, 0), RingElement(2 * i, d));
      Store(row.update[d], op.dtype, At(op.ring_update, 0), RingElement(2 * i + 1, d));
    }
  }
};

// sum_d S[d][e] x[d]
double Read(const State& s, const Vector& x, std::size_t e) {
  double sum = 0;
  for (std::size_t d = 0; d < s.size(); ++d) sum += s[d][e] * x[d];
  return sum;
}

void RunRow(const Place& at, std::int64_t i, State& s, Row& row) {
  const KdaStepOp& op = at.op;
  const std::int64_t r = at.request * op.query_rows + i;
  const std::int64_t index = r * op.heads + at.head;
  const std::int64_t begin = r * op.row_stride + at.head * op.dim;
  Vector query(s.size());
  State forgot = s;
  for (std::size_t d = 0; d < s.size(); ++d) {
    const auto lane = static_cast<std::int64_t>(d);
    query[d] = D(op.q[begin + lane]);
    row.key[d] = Rounded(D(op.k[begin + lane]), op.dtype);
    row.decay[d] = D(op.decay[index * op.dim + lane]);
    for (double& value : forgot[d]) value *= row.decay[d];
  }
  for (std::size_t e = 0; e < s.size(); ++e) {
    const double value = D(op.v[begin + static_cast<std::int64_t>(e)]);
    row.update[e] = Rounded(D(op.beta[index]) * (value - Read(forgot, row.key, e)), op.dtype);
  }
  TakeIn(row, s);
  for (std::size_t e = 0; e < s.size(); ++e) {
    const double out = Read(s, query, e);
    op.out[index * op.dim + static_cast<std::int64_t>(e)] = static_cast<float>(out);
    if (!std::isfinite(static_cast<float>(out))) *op.fault = 1;
  }
}

void RunHead(const Place& at) {
  const KdaStepOp& op = at.op;
  const auto dim = static_cast<std::size_t>(op.dim);
  State s(dim, Vector(dim, 0.0));
  Row row{Vector(dim), Vector(dim), Vector(dim)};
  bool begun = false;
  for (std::int64_t i = 0; i < op.query_rows; ++i) {
    const std::int64_t r = at.request * op.query_rows + i;
    for (std::int64_t e = 0; e < op.dim; ++e) op.out[(r * op.heads + at.head) * op.dim + e] = 0;
    if (op.bounds[r] == 0) continue;
    if (!begun && op.reads[at.request] >= 0) at.LoadState(op.reads[at.request], s);
    for (std::int64_t j = 0; !begun && j < op.replays[at.request]; ++j) {
      at.LoadRing(j, row);
      TakeIn(row, s);
    }
    if (!begun && op.replays[at.request] > 0) at.StoreState(s, 0);
    begun = true;
    RunRow(at, i, s, row);
    if (op.keeps_rows) at.StoreRing(row, i);
    if (op.writes[r] >= 0) at.StoreState(s, op.writes[r]);
  }
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

void ReferenceKdaStep(const KdaStepOp& op) {
  for (std::int64_t request = 0; request < op.requests; ++request) {
    for (std::int64_t head = 0; head < op.heads; ++head) RunHead({op, request, head});
  }
}

}  // namespace kvasir::cpu
