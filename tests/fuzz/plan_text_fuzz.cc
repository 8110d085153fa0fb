// Any bytes: the parser answers with a status; what it accepts is canonical; the verifier never overflows or
// aborts; what the verifier accepts can be explained.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/core/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<kvasir::Plan> plan = kvasir::PlanFromText(text);
  if (!plan.ok()) return 0;
  KVASIR_CHECK(kvasir::PlanToText(*plan) == text);
  if (kvasir::VerifyPlan(*plan).ok()) KVASIR_CHECK(!kvasir::ExplainPlan(*plan).empty());
  return 0;
}
