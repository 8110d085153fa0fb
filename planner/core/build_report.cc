#include "planner/core/build_report.h"

#include <algorithm>

namespace kvasir {

std::vector<std::int64_t> ReportContexts(const PlanRequest& request) {
  std::vector<std::int64_t> contexts = request.capacity_contexts;
  if (contexts.empty()) contexts = {8192, 32768, 131072, request.context_tokens};
  for (std::int64_t& context : contexts) context = std::min(context, request.context_tokens);
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  return contexts;
}

Report BuildReport(const Plan& plan, const Sized& sized) {
  const PlanRequest& request = sized.packed.request();
  Report report;
  for (const std::int64_t context : ReportContexts(request))
    report.capacity.push_back(CapacityAt(plan, context));
  report.longest_context_tokens = LongestContext(plan, 1, request.target.context_tokens);
  report.longest_is_model_limit = report.longest_context_tokens == request.target.context_tokens;
  report.rollback_options = sized.rollback_options;
  report.sizes = sized.choice;
  return report;
}

}  // namespace kvasir
