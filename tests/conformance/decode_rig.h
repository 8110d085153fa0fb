// Runs one DecodeCase on a backend: random cache and queries, pages in shuffled order, NaN in every slot that
// holds no token, absurd ids in unused table entries; all DCP ranks as threads. And the same attention in
// double, straight from the unpaged values.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_RIG_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_RIG_H_

#include <cstdint>
#include <functional>
#include <memory>
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
};
[[nodiscard]] const std::vector<BackendUnderTest>& BackendsUnderTest();

struct DecodeValues {
  std::vector<float> out;  // [rows, heads, latent]
  std::vector<float> lse;  // [rows, heads]
  bool fault = false;
};

// What a case is made of, unpaged.
struct DecodeData {
  DecodeCase c;
  std::vector<std::int64_t> lengths;      // [batch]
  std::vector<std::vector<float>> cache;  // [batch][length * (latent + rope)], exact in the cache's type
  std::vector<float> q;                   // [rows, heads, latent + rope]
  float scale = 0;
  [[nodiscard]] std::int64_t rows() const { return c.batch * c.query_rows; }
  [[nodiscard]] std::int64_t width() const { return c.latent + c.rope; }
};
[[nodiscard]] DecodeData MakeData(const DecodeCase& c, std::uint64_t seed);

// How a run differs from the plain one.
struct RunOptions {
  std::uint64_t page_seed = 1;   // order of the pages
  bool flip_causal = false;      // planted fault: the other group's flag
  std::int64_t bound_shift = 0;  // planted fault: bounds off by so many tokens
  std::int64_t poison = -1;      // NaN into this token of the first request, on the rank that holds it
  bool replay = false;           // capture, destroy the list, replay
};
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
