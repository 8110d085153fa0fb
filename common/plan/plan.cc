#include "common/plan/plan.h"

namespace kvasir {

std::string_view PassName(Pass pass) {
  switch (pass) {
    case Pass::kTargetPrefill:
      return "target_prefill";
    case Pass::kTargetDecode:
      return "target_decode";
    case Pass::kTargetVerify:
      return "target_verify";
    case Pass::kDraftContext:
      return "draft_context";
    case Pass::kDraftBlock:
      return "draft_block";
  }
  return "invalid";
}

std::string_view StateRollbackName(StateRollback rollback) {
  switch (rollback) {
    case StateRollback::kNone:
      return "none";
    case StateRollback::kSnapshots:
      return "snapshots";
    case StateRollback::kReplay:
      return "replay";
  }
  return "invalid";
}

std::vector<const PlanGroup*> GroupsOf(const Plan& plan) {
  std::vector<const PlanGroup*> groups;
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) groups.push_back(&group);
  }
  return groups;
}

std::int64_t DraftBlockRows(const Plan& plan) {
  for (const PlanGroup* group : GroupsOf(plan)) {
    if (group->behaviour.role == Role::kDraft) return group->behaviour.block_rows;  // all of a draft's agree
  }
  return 0;
}

}  // namespace kvasir
