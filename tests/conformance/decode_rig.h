// Runs attention cases on a backend: random cache and queries, pages in shuffled order, NaN in every slot
// that holds no token, absurd ids in unused table entries; all DCP ranks as threads. And the same attention
// in double, straight from the unpaged values.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_RIG_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_RIG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/decode_case.h"
#include "worker/engine/backend.h"
#include "worker/engine/communicator.h"

namespace kvasir::testing {

// A backend under test. `context` is the DCP group, null for one rank.
struct BackendUnderTest {
  std::string name;
  std::function<std::unique_ptr<Backend>(Communicator* context)> make;
  bool rounds_to_bf16 = false;  // queries and weights, where the cache is bf16: as tensor cores want them
};
inline void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name; }
[[nodiscard]] const std::vector<BackendUnderTest>& BackendsUnderTest();

struct DecodeValues {
  std::vector<float> out;  // [rows, heads, latent]
  std::vector<float> lse;  // [rows, heads]
  bool fault = false;

  [[nodiscard]] bool SameBits(const DecodeValues& other) const {
    return out == other.out && lse == other.lse;
  }
};

// What a case is made of, unpaged.
struct DecodeData {
  DecodeCase c;
  std::vector<std::int64_t> lengths;      // [batch]
  std::vector<std::vector<float>> cache;  // [batch][length * (latent + rope)], exact in the cache's type
  std::vector<float> q;                   // [rows, heads, latent + rope]
  float scale = 0;
  [[nodiscard]] std::int64_t rows() const { return c.batch * c.query_rows; }
};
[[nodiscard]] DecodeData MakeData(const DecodeCase& c, std::uint64_t seed);

// How a run differs from the plain one.
struct RunOptions {
  std::uint64_t page_seed = 1;   // order of the pages
  bool flip_causal = false;      // planted fault: the other group's flag
  std::int64_t bound_shift = 0;  // planted fault: bounds off by so many tokens
  bool naive_bounds = false;     // planted fault: a rank's length less the query's distance from the end
  std::int64_t poison = -1;      // NaN into this token of the first request, on the rank that holds it
  bool replay = false;           // replay the shape's graph; the first such phase captures it
};

// One run of a series in one process.
struct DecodePhase {
  const DecodeData* data = nullptr;
  RunOptions options = {};
};
// Every phase in turn, over one set of buffers and one graph for each shape (all of a case but lengths, batch
// and causality). All phases have the same ranks.
[[nodiscard]] absl::StatusOr<std::vector<DecodeValues>> RunPhases(const BackendUnderTest& backend,
                                                                  std::span<const DecodePhase> phases);
[[nodiscard]] absl::StatusOr<DecodeValues> RunDecode(const BackendUnderTest& backend, const DecodeData& data,
                                                     const RunOptions& options = {});

// Double precision, unpaged, unsharded. lse of an empty row is -inf, its out 0.
struct ExactValues {
  std::vector<double> out;
  std::vector<double> lse;
};
[[nodiscard]] ExactValues ExactDecode(const DecodeData& data);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_DECODE_RIG_H_
