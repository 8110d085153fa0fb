#include "tests/conformance/decode_case.h"

#include <ostream>
#include <string>
#include <utility>

namespace kvasir::testing {
namespace {

// Lengths around page (16, 64) and split (64) edges, and below the number of query rows.
void AddGrid(std::vector<DecodeCase>* cases) {
  for (const std::int64_t length : {0, 1, 5, 16, 17, 63, 64, 65, 127, 259}) {
    for (const std::int64_t query_rows : {1, 2, 4, 8}) {
      for (const std::int64_t heads : {1, 5}) {
        for (const bool causal : {true, false}) {
          cases->push_back({.length = length, .query_rows = query_rows, .heads = heads, .causal = causal});
        }
      }
    }
  }
}

void AddContextParallel(std::vector<DecodeCase>* cases) {
  for (const std::int64_t dcp : {1, 2, 4, 8}) {
    for (const std::int64_t interleave : {1, 4, 16}) {
      for (const std::int64_t query_rows : {1, 7}) {
        for (const std::int64_t length : {0, 3, 65, 259}) {
          for (const bool causal : {true, false}) {
            cases->push_back({.batch = 2,
                              .length = length,
                              .query_rows = query_rows,
                              .causal = causal,
                              .dcp = dcp,
                              .interleave = interleave});
          }
        }
      }
    }
  }
}

void AddShapes(std::vector<DecodeCase>* cases) {
  // The published shape, 512 + 64, with pages of 64; f32 caches; splits that no page divides; a long context.
  for (const bool causal : {true, false}) {
    cases->push_back({.batch = 2,
                      .length = 130,
                      .query_rows = 8,
                      .heads = 16,
                      .causal = causal,
                      .latent = 512,
                      .rope = 64,
                      .block_tokens = 64,
                      .split_tokens = 128});
    cases->push_back({.length = 130, .query_rows = 4, .causal = causal, .dtype = DType::kF32});
    cases->push_back({.length = 130, .query_rows = 4, .causal = causal, .split_tokens = 7});
    cases->push_back({.length = 130, .query_rows = 4, .causal = causal, .split_tokens = 1});
    cases->push_back(
        {.length = 130, .query_rows = 4, .causal = causal, .latent = 64, .rope = 16, .block_tokens = 1});
    cases->push_back({.length = 130, .query_rows = 3, .heads = 3, .causal = causal});
    cases->push_back({.batch = 17, .length = 330, .query_rows = 2, .heads = 2, .causal = causal});
    cases->push_back({.batch = 1,
                      .length = 4099,
                      .query_rows = 2,
                      .heads = 4,
                      .causal = causal,
                      .block_tokens = 64,
                      .split_tokens = 128});
    cases->push_back({.batch = 1,
                      .length = 4099,
                      .query_rows = 2,
                      .heads = 4,
                      .causal = causal,
                      .dcp = 4,
                      .block_tokens = 64,
                      .split_tokens = 128});
  }
}

}  // namespace

DecodeCase Mixed(DecodeCase c, std::vector<std::int64_t> lengths) {
  c.batch = static_cast<std::int64_t>(lengths.size());
  c.mix = std::move(lengths);
  c.length = c.longest();
  return c;
}

void PrintTo(const DecodeCase& c, std::ostream* out) {
  *out << "batch " << c.batch << ", length " << c.length << ", q " << c.query_rows << ", heads " << c.heads
       << (c.causal ? ", causal" : ", non-causal") << ", dcp " << c.dcp << ", interleave " << c.interleave
       << ", dims " << c.latent << "+" << c.rope << ", page " << c.block_tokens << ", split "
       << c.split_tokens << ", " << std::string(DTypeName(c.dtype)) << (c.mix.empty() ? "" : ", mix");
  for (const std::int64_t length : c.mix) *out << " " << length;
}

std::vector<DecodeCase> AllDecodeCases() {
  std::vector<DecodeCase> cases;
  AddGrid(&cases);
  AddContextParallel(&cases);
  AddShapes(&cases);
  return cases;
}

}  // namespace kvasir::testing
