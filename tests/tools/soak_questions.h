// What the soak asks: prompts of the trained pair's form, and ways to choose tokens; and what the answers
// are.
#ifndef KVASIR_TESTS_TOOLS_SOAK_QUESTIONS_H_
#define KVASIR_TESTS_TOOLS_SOAK_QUESTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kvasir/worker/v1/decode.pb.h"

namespace kvasir::soak {

inline constexpr char kDeployment[] = "soak";
inline constexpr std::int64_t kContextTokens = 512;
inline constexpr std::int64_t kPrefillChunk = 32;   // so that most prompts take several chunks
inline constexpr std::int64_t kGreedyTokens = 96;   // the longest greedy answer asked for
inline constexpr std::int64_t kSampledTokens = 24;  // all: the last draft block depends on it
inline constexpr std::int32_t kEndOfText = 257;     // tools/pair/text.py

// Token ids: the beginning of text, then bytes. From about 20 to about 100 tokens.
[[nodiscard]] const std::vector<std::vector<std::int32_t>>& Prompts();

// A way to choose tokens. Without temperature: greedily.
struct Way {
  bool speculate = false;
  double temperature = 0;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::uint64_t seed = 0;
  worker::v1::VerifyMethod verify = worker::v1::VERIFY_METHOD_UNSPECIFIED;
  [[nodiscard]] bool greedy() const { return temperature == 0; }
};
// Two greedy ones first, without the draft and with it: their tokens are the same.
[[nodiscard]] std::span<const Way> Ways();

// The request for prompt and way, with log-probabilities; tag and limit are the caller's.
[[nodiscard]] worker::v1::JoinRequest Ask(std::size_t prompt, std::size_t way);

struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;  // of each token
};

// What every answer must be a prefix of.
class Answers {
 public:
  void Set(std::size_t prompt, std::size_t way, Answer answer);
  [[nodiscard]] const Answer& At(std::size_t prompt, std::size_t way) const;
  // The ways that need an answer of their own.
  [[nodiscard]] static std::vector<std::size_t> WaysToLearn();

 private:
  std::map<std::pair<std::size_t, std::size_t>, Answer> answers_;
};

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_QUESTIONS_H_
