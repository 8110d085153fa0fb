#include "planner/cli/keep_plan.h"

#include <ostream>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "common/models/model_text.h"
#include "planner/cli/plan_store.h"
#include "planner/cli/stored_question.h"

namespace kvasir::cli {

bool KeepPlan(const Console& console, const CommandLine& line, const PlanQuestion& question,
              const PlanOutcome& outcome) {
  const auto* planned = std::get_if<Planned>(&outcome);
  if (planned == nullptr || line.Has("no-save")) return false;
  absl::Status saved = SavePlan(console, planned->plan_id, planned->text);
  saved.Update(SaveQuestion(console, planned->plan_id, question));
  saved.Update(SaveModel(console, planned->plan.target.digest, ModelToText(question.target)));
  if (question.draft.has_value()) {
    saved.Update(SaveModel(console, planned->plan.draft.digest, ModelToText(*question.draft)));
  }
  if (!saved.ok()) console.err << "kvasir plan: not stored: " << std::string(saved.message()) << "\n";
  return saved.ok();
}

}  // namespace kvasir::cli
