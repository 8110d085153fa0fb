// Prints the plan_id of the Kimi-K3 + DSpark request: builds of different compilers and modes must print the
// same. With an argument it prints the canonical text instead, so that a difference can be looked at.
#include <cstdio>
#include <variant>

#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"

int main(int argc, char**) {
  const kvasir::PlanOutcome outcome = kvasir::MakePlan(kvasir::testing::K3Request());
  const auto* planned = std::get_if<kvasir::Planned>(&outcome);
  if (planned == nullptr) {
    std::fprintf(stderr, "the request was not planned\n");
    return 1;
  }
  std::printf("%s\n", argc > 1 ? planned->text.c_str() : planned->plan_id.c_str());
  return 0;
}
