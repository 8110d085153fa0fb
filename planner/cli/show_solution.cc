#include "planner/cli/show_solution.h"

#include <cstdint>
#include <ostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"
#include "planner/cli/show_refusals.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kIdShown = 12;

std::string Counted(std::int64_t count, std::string_view one) {
  return absl::StrFormat("%s %s%s", Thousands(count), one, count == 1 ? "" : "s");
}

std::string GoalText(SolveGoal goal, std::int64_t value) {
  switch (goal) {
    case SolveGoal::kContext:
      return Counted(value, "token");
    case SolveGoal::kRequests:
      return Counted(value, "request");
    case SolveGoal::kRanks:
      return Counted(value, "rank");
    case SolveGoal::kMemory:
      return BytesText(value) + " per rank";
  }
  return "";
}

// "1.81x": what the change makes of the answer, larger is better.
std::string GainText(SolveGoal goal, std::int64_t value, std::int64_t base) {
  const bool more = goal == SolveGoal::kContext || goal == SolveGoal::kRequests;
  const std::int64_t better = more ? value : base;
  const std::int64_t worse = more ? base : value;
  if (worse <= 0) return "";
  const std::int64_t hundredths = better / worse * 100 + better % worse * 100 / worse;
  return absl::StrFormat("%s.%02dx", Thousands(hundredths / 100), hundredths % 100);
}

// The command that makes this very plan.
std::string AgainText(const std::string& models, const Solution& solution) {
  const PlanOptions& o = solution.options;
  const PlanOptions usual;
  std::string text = absl::StrFormat(
      "kvasir plan %s --tp %d --dcp %d --kv-memory %d --context %d --min-requests %d", models, o.tp, o.dcp,
      solution.planned.plan.arena_bytes.value(), solution.context_tokens, o.min_requests);
  const auto number = [&text](const char* flag, std::int64_t value, std::int64_t unsaid) {
    if (value != unsaid) text += absl::StrFormat(" --%s %d", flag, value);
  };
  const auto word = [&text](const char* flag, const std::string& value, const std::string& unsaid) {
    if (value != unsaid) text += absl::StrFormat(" --%s %s", flag, value);
  };
  number("max-requests", o.max_requests, DefaultMaxRequests(o.min_requests));
  number("interleave", o.interleave, usual.interleave);
  number("block-tokens", o.block_tokens, usual.block_tokens);
  number("prefill-chunk", o.prefill_chunk, usual.prefill_chunk);
  word("target-backend", o.target_backend, usual.target_backend);
  word("draft-backend", o.draft_backend, usual.draft_backend);
  word("kv-cache-dtype", o.cache_dtype, usual.cache_dtype);
  word("state-rollback", o.state_rollback, usual.state_rollback);
  word("draft-context", o.draft_context, usual.draft_context);
  number("draft-tokens", solution.planned.plan.draft_tokens, 0);
  return text;
}

// With a device: what it is if weights and graphs take as little as they can.
void ShowAtBest(const Console& console, const SolveQuestion& question, const Solution& best) {
  const Plan& plan = best.planned.plan;
  console.out << absl::StrFormat("  at best  %s: TP %d × DCP %d, if %s per rank are left\n",
                                 GoalText(question.goal, best.value), plan.topology.tp, plan.topology.dcp,
                                 BytesText(plan.arena_bytes.value()));
}

// Only at the device's best is there an answer: it comes first, then what stands against it.
void ShowMayFit(const Console& console, const SolveQuestion& question, const std::string& models,
                const SolveAnswer& answer) {
  const Solution& best = *answer.at_best;
  const Plan& plan = best.planned.plan;
  const std::string most = BytesText(plan.arena_bytes.value());
  console.out << Inked(console, Ink::kBold, "may fit")
              << absl::StrFormat(
                     "   %s: TP %d × DCP %d, if %s per rank are left for caches\n\n",
                     GoalText(question.goal, best.value), plan.topology.tp, plan.topology.dcp,
                     answer.needed.has_value() ? BytesText(answer.needed->value()) + " or more" : most);
  if (answer.needed.has_value()) {
    console.out << absl::StrFormat("  at best  %s per rank are left, and %s fit\n", most,
                                   Counted(best.requests, "request"));
  }
  const NoSolution& why = answer.why_not;
  std::string worst = why.device;
  if (why.misfit.has_value()) worst = "short by " + BytesText(why.misfit->shortfall.value()) + " per rank";
  if (!worst.empty()) console.out << "  at worst " << worst << "\n";
  console.out << "  again    " << AgainText(models, best) << "\n";
}

// Ways out in the words of solve, without what it looks for itself or what the device decides.
DoesNotFit InSolveWords(const SolveQuestion& question, DoesNotFit misfit) {
  std::erase_if(misfit.remedies, [&question](const FitRemedy& remedy) {
    const bool memory = remedy.field.find("kv_memory") != std::string::npos;
    return (memory && (question.device.has_value() || question.goal == SolveGoal::kMemory)) ||
           (remedy.field == "context_tokens" && question.goal == SolveGoal::kContext) ||
           (remedy.field == "min_requests" && question.goal == SolveGoal::kRequests);
  });
  for (FitRemedy& remedy : misfit.remedies) {
    if (remedy.field == "min_requests") remedy.field = "--requests";
  }
  return misfit;
}

void ShowWhyNot(const Console& console, const SolveQuestion& question, const NoSolution& why) {
  if (why.misfit.has_value()) {
    ShowDoesNotFit(console, InSolveWords(question, *why.misfit));
    if (question.device.has_value())
      console.out << "\nThe memory is what the device leaves at most, weights and graphs at their least.\n";
  } else if (!why.device.empty()) {
    console.out << Inked(console, Ink::kBad, "does not fit") << "   " << why.device << "\n";
  } else {
    ShowRefusals(console, question.base, Refusals{why.refusals});
  }
  if (why.tp > 0) console.out << absl::StrFormat("\nNearest to fitting: TP %d × DCP %d.\n", why.tp, why.dcp);
}

// Changes are answered with the least that a device leaves.
const char* HeadWithout(const SolveQuestion& question) {
  return question.device.has_value() ? "Certain with" : "Possible with";
}

void ShowInstead(const Console& console, const SolveQuestion& question, const SolveAnswer& answer) {
  if (answer.instead.empty()) return;
  TextTable table("lrl");
  for (const ChangedSolution& change : answer.instead) {
    table.Row(
        {change.flags, GoalText(question.goal, change.value),
         answer.solution.has_value() ? GainText(question.goal, change.value, answer.solution->value) : ""});
  }
  console.out << "\n"
              << Inked(console, Ink::kBold,
                       answer.solution.has_value() ? "Better with" : HeadWithout(question))
              << "\n"
              << table.Text(2);
}

}  // namespace

void ShowSolution(const Console& console, const SolveQuestion& question, const std::string& models,
                  const SolveAnswer& answer, bool kept) {
  if (!answer.solution.has_value()) {
    if (answer.at_best.has_value()) {
      ShowMayFit(console, question, models, answer);
    } else {
      ShowWhyNot(console, question, answer.why_not);
    }
    ShowInstead(console, question, answer);
    return;
  }
  const Solution& solution = *answer.solution;
  const Plan& plan = solution.planned.plan;
  const std::string id = solution.planned.plan_id.substr(0, kIdShown);
  console.out << Inked(console, Ink::kGood, GoalText(question.goal, solution.value))
              << absl::StrFormat("   plan %s · TP %d × DCP %d · %s per rank\n\n", id, plan.topology.tp,
                                 plan.topology.dcp, BytesText(plan.arena_bytes.value()));
  console.out << absl::StrFormat("  admits   %s of %s tokens at a time; %s of them under any churn\n",
                                 Counted(solution.requests, "request"), Thousands(solution.context_tokens),
                                 Thousands(solution.guaranteed_requests));
  if (solution.requests > plan.max_requests) {
    console.out << absl::StrFormat("  batch    %s of them run together%s\n", Thousands(plan.max_requests),
                                   question.batch_is_said ? ", by --max-requests" : "");
  }
  if (question.device.has_value()) {
    console.out << absl::StrFormat(
        "  memory   what an %s leaves at least, weights and graphs at their most\n",
        std::string(question.device->title));
  }
  if (answer.at_best.has_value()) ShowAtBest(console, question, *answer.at_best);
  console.out << "  again    " << AgainText(models, solution) << "\n";
  ShowInstead(console, question, answer);
  if (kept) console.out << absl::StrFormat("\nNext     kvasir explain %s      why each of these\n", id);
}

}  // namespace kvasir::cli
