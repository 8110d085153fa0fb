#include "tests/conformance/published_case.h"

#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "common/base/check.h"

namespace kvasir::testing {
namespace {

constexpr std::array<std::int64_t, 4> kQueryRows = {1, 4, 7, 8};
constexpr std::array<std::int64_t, 5> kHeads = {12, 16, 64, 96, 128};
constexpr std::int64_t kLong = 4099;

std::vector<std::int64_t> LengthsFor(std::int64_t query_rows) {
  std::vector<std::int64_t> lengths = {0, 1, 63, 64, 65, 127, 130, 259, kLong};
  if (query_rows > 1) lengths.push_back(query_rows);
  return lengths;
}

constexpr std::int64_t kLongHeads = 16;

// The number of query rows that 4099 tokens meet with other than 16 heads: those of Kimi-K3's verify on one
// rank or many (12 and 96 heads), of its draft's block (64), and a short verify.
std::int64_t LongRows(std::int64_t heads) {
  if (heads == 64) return 7;
  return heads == 128 ? 4 : 8;
}

bool InProduct(const DecodeCase& c) {
  return c.length != kLong || c.heads == kLongHeads || c.query_rows == LongRows(c.heads);
}

// A case's value in each dimension; lengths of q are one value, whatever q is.
std::array<std::int64_t, 6> ValuesOf(const DecodeCase& c) {
  return {c.dcp * 100 + c.interleave,
          c.query_rows,
          c.heads,
          c.length == c.query_rows && c.length > 1 ? -1 : c.length,
          c.causal ? 1 : 0,
          c.dtype == DType::kBf16 ? 1 : 0};
}

// Adds the pairs of a case's values; whether one of them is new.
bool AddPairs(const DecodeCase& c, std::set<std::array<std::int64_t, 4>>& pairs) {
  const std::array<std::int64_t, 6> values = ValuesOf(c);
  bool is_new = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto a = static_cast<std::int64_t>(i);
      const auto b = static_cast<std::int64_t>(j);
      is_new = pairs.insert({a, values[i], b, values[j]}).second || is_new;
    }
  }
  return is_new;
}

}  // namespace

DecodeCase PublishedShape() {
  return {.batch = 1,
          .length = 130,
          .heads = 16,
          .latent = 512,
          .rope = 64,
          .block_tokens = 64,
          .split_tokens = 128,
          .mix = {},
          .skewed = true};
}

std::vector<DecodeCase> PublishedShapes() {
  std::vector<DecodeCase> shapes;
  DecodeCase c = PublishedShape();
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    c.dtype = dtype;
    for (const std::int64_t query_rows : kQueryRows) {
      c.query_rows = query_rows;
      for (const std::int64_t heads : kHeads) {
        c.heads = heads;
        for (const std::int64_t length : LengthsFor(query_rows)) {
          c.length = length;
          for (const bool causal : {true, false}) {
            c.causal = causal;
            if (InProduct(c)) shapes.push_back(c);
          }
        }
      }
    }
  }
  return shapes;
}

std::vector<DecodeCase> InEveryWorld(const DecodeCase& shape) {
  std::vector<DecodeCase> cases = {shape};
  for (const std::int64_t dcp : {2, 4, 8}) {
    if (shape.heads % dcp != 0) continue;
    for (const std::int64_t interleave : {1, 16, 64}) {
      cases.push_back(shape);
      cases.back().dcp = dcp;
      cases.back().interleave = interleave;
    }
  }
  return cases;
}

std::vector<DecodeCase> PublishedPairs() {
  std::vector<DecodeCase> all;
  for (const DecodeCase& shape : PublishedShapes()) {
    if (shape.length == kLong && (shape.heads != kLongHeads || shape.query_rows > 4)) continue;
    for (DecodeCase& c : InEveryWorld(shape)) all.push_back(std::move(c));
  }
  // A stride that is prime to the number of cases visits each once, near ones far apart.
  constexpr std::size_t kStride = 3571;
  KVASIR_CHECK(std::gcd(kStride, all.size()) == 1);
  std::vector<DecodeCase> chosen;
  std::set<std::array<std::int64_t, 4>> pairs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const DecodeCase& c = all[i * kStride % all.size()];
    if (AddPairs(c, pairs)) chosen.push_back(c);
  }
  return chosen;
}

std::vector<DecodeCase> PublishedMixes() {
  std::vector<DecodeCase> cases;
  DecodeCase c = PublishedShape();
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    c.dtype = dtype;
    for (const std::int64_t query_rows : kQueryRows) {
      c.query_rows = query_rows;
      for (const bool causal : {true, false}) {
        c.causal = causal;
        cases.push_back(Mixed(c, {64, 0, 259, 1, 130, query_rows, 63, 0, 127, 65}));
      }
    }
  }
  return cases;
}

std::vector<DecodeCase> PublishedSplits() {
  std::vector<DecodeCase> cases;
  DecodeCase c = PublishedShape();
  c.heads = 2;
  for (const std::int64_t split : {1, 64, 128, 512, 8192}) {
    c.split_tokens = split;
    for (const std::int64_t query_rows : {1, 8}) {
      c.query_rows = query_rows;
      for (const bool causal : {true, false}) {
        c.causal = causal;
        cases.push_back(Mixed(c, {1, 64, 0, 65, 130, 129, 259, 3}));
        cases.push_back(cases.back());
        cases.back().dcp = 2;
        cases.back().interleave = 16;
      }
    }
  }
  return cases;
}

}  // namespace kvasir::testing
