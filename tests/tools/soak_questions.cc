#include "tests/tools/soak_questions.h"

#include <string>

namespace kvasir::soak {
namespace {

constexpr std::int32_t kBeginOfText = 256;

using worker::v1::VERIFY_METHOD_BLOCK;
using worker::v1::VERIFY_METHOD_STANDARD;

constexpr Way kWays[] = {
    {.speculate = false},
    {.speculate = true},
    {.speculate = false, .temperature = 0.8, .seed = 11},
    {.speculate = false, .temperature = 1.0, .top_k = 12, .top_p = 0.9, .seed = 12},
    {.speculate = true, .temperature = 0.8, .seed = 13, .verify = VERIFY_METHOD_BLOCK},
    {.speculate = true, .temperature = 0.7, .top_p = 0.95, .seed = 14, .verify = VERIFY_METHOD_STANDARD},
};

std::vector<std::vector<std::int32_t>> MakePrompts() {
  const char* const questions[] = {
      "Name the capital of France.",
      "Take 7 from 41.",
      "Spell raven.",
      "Name the months from March to July.",
      "Say winter 4 times.",
      "Anna has 24 apples and gives 9 away. How many now?",
      "Sort 62, 5, 40. Sort 9, 88, 13. Sort 71, 70, 2. Sort 33, 3, 30. Sort 16, 61, 6. Sort 20, 10, 0.",
      "Reverse red, green, blue. Name the day after Monday. What sound does a cow make? Multiply 6 by 7.",
  };
  std::vector<std::vector<std::int32_t>> prompts;
  for (const char* question : questions) {
    const std::string text = "Q: " + std::string(question) + "\nA:";
    std::vector<std::int32_t> tokens = {kBeginOfText};
    tokens.insert(tokens.end(), text.begin(), text.end());
    prompts.push_back(std::move(tokens));
  }
  return prompts;
}

// Greedy tokens are the same with and without the draft.
std::size_t Source(std::size_t way) { return kWays[way].greedy() ? 0 : way; }

}  // namespace

const std::vector<std::vector<std::int32_t>>& Prompts() {
  static const auto& prompts = *new std::vector<std::vector<std::int32_t>>(MakePrompts());
  return prompts;
}

std::span<const Way> Ways() { return kWays; }

worker::v1::JoinRequest Ask(std::size_t prompt, std::size_t way) {
  const Way& how = kWays[way];
  const std::vector<std::int32_t>& tokens = Prompts()[prompt];
  worker::v1::JoinRequest join;
  join.set_deployment(kDeployment);
  join.mutable_prompt_token_ids()->Assign(tokens.begin(), tokens.end());
  join.set_max_tokens(how.greedy() ? kGreedyTokens : kSampledTokens);
  join.set_speculate(how.speculate);
  worker::v1::SamplingParameters& sampling = *join.mutable_sampling();
  sampling.set_temperature(how.temperature);
  sampling.set_top_k(how.top_k);
  sampling.set_top_p(how.top_p);
  sampling.set_seed(how.seed);
  sampling.set_verify_method(how.verify);
  sampling.set_logprobs(true);
  return join;
}

void Answers::Set(std::size_t prompt, std::size_t way, Answer answer) {
  answers_[{prompt, Source(way)}] = std::move(answer);
}

const Answer& Answers::At(std::size_t prompt, std::size_t way) const {
  return answers_.at({prompt, Source(way)});
}

std::vector<std::size_t> Answers::WaysToLearn() {
  std::vector<std::size_t> ways;
  for (std::size_t way = 0; way < Ways().size(); ++way) {
    if (Source(way) == way) ways.push_back(way);
  }
  return ways;
}

}  // namespace kvasir::soak
