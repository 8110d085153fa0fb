#include "tests/tools/soak_learn.h"

#include <cstddef>
#include <cstdint>

#include "tests/tools/soak_script.h"
#include "tests/tools/soak_stream.h"

namespace kvasir::soak {

Answers LearnAnswers(worker::v1::WorkerService::Stub& leader, Tally& tally) {
  StreamScript script{.number = -1};
  for (const std::size_t way : Answers::WaysToLearn()) {
    for (std::size_t prompt = 0; prompt < Prompts().size(); ++prompt) {
      script.requests.push_back({.prompt = prompt,
                                 .way = way,
                                 .limit = Ask(prompt, way).max_tokens(),
                                 .logprobs = true,
                                 .wait = true});
    }
  }
  SoakStream stream(leader, script, nullptr, tally);
  stream.Play();
  Answers answers;
  if (tally.counts().faults > 0) return answers;  // not all may have been sent
  for (std::size_t i = 0; i < script.requests.size(); ++i) {
    const RequestScript& asked = script.requests[i];
    answers.Set(asked.prompt, asked.way, stream.request(static_cast<std::int64_t>(i) + 1).said());
  }
  return answers;
}

}  // namespace kvasir::soak
