// The question that tests of questions ask: Kimi-K3 with its DSpark draft on 8 ranks that share a context.
#ifndef KVASIR_TESTS_TESTING_KIMI_QUESTION_H_
#define KVASIR_TESTS_TESTING_KIMI_QUESTION_H_

#include <cstdint>

#include "common/models/catalogue.h"
#include "planner/questions/plan_question.h"

namespace kvasir::testing {

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// 7 drafted tokens, 128k tokens of context, 20 GiB on each rank.
[[nodiscard]] inline PlanQuestion KimiQuestion() {
  PlanQuestion question;
  question.target = *FindInCatalogue("kimi-k3");
  question.draft = *FindInCatalogue("kimi-k3-dspark");
  question.options.tp = 8;
  question.options.dcp = 8;
  question.options.draft_tokens = 7;
  question.options.kv_memory_bytes = {20 * kGiB};
  question.options.contexts = {131072};
  return question;
}

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_KIMI_QUESTION_H_
