#include "planner/questions/changes.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "common/base/limits.h"
#include "planner/request/build_request.h"

namespace kvasir {
namespace {

// Our word and the flag's.
struct CacheWord {
  std::string_view option;
  std::string_view flag;
};
constexpr CacheWord kCacheWords[] = {{"auto", "auto"}, {"fp8_e4m3", "fp8"}};
constexpr std::int64_t kFewerTokens[] = {5, 3};

void AddDcp(const PlanQuestion& question, std::vector<Change>& out) {
  const std::int64_t tp = std::min(question.options.tp, kRanksMax);
  for (std::int64_t dcp = 1; dcp <= tp; ++dcp) {
    if (tp % dcp != 0 || dcp == question.options.dcp) continue;
    out.push_back({"--dcp " + std::to_string(dcp), [dcp](PlanQuestion& q) { q.options.dcp = dcp; }});
  }
}

// Keys and values of few heads may take less where every rank keeps its own heads of all tokens.
void AddDraftContext(const PlanQuestion& question, std::vector<Change>& out) {
  if (!question.draft.has_value() || question.options.dcp < 2) return;
  for (const std::string_view word : {kDraftSharded, kDraftReplicated}) {
    const std::string other(word);
    if (question.options.draft_context == other) continue;
    out.push_back(
        {"--draft-context " + other, [other](PlanQuestion& q) { q.options.draft_context = other; }});
  }
}

void AddDraft(const PlanQuestion& question, std::vector<Change>& out) {
  if (!question.draft.has_value()) return;
  const std::int64_t tokens = DraftTokensOf(question.options, question.draft);
  for (const std::int64_t fewer : kFewerTokens) {
    if (fewer >= tokens) continue;
    out.push_back({"--draft-tokens " + std::to_string(fewer),
                   [fewer](PlanQuestion& q) { q.options.draft_tokens = fewer; }});
  }
  out.push_back({"no --draft", [](PlanQuestion& q) {
                   q.draft.reset();
                   q.options.draft_tokens = 0;
                   q.options.draft_backend.clear();
                   q.options.state_rollback = "auto";
                 }});
}

}  // namespace

std::vector<Change> ChangesBesideDcp(const PlanQuestion& question) {
  std::vector<Change> out;
  AddDraftContext(question, out);
  for (const CacheWord& word : kCacheWords) {
    const std::string option(word.option);
    if (question.options.cache_dtype == option) continue;
    out.push_back({"--kv-cache-dtype " + std::string(word.flag),
                   [option](PlanQuestion& q) { q.options.cache_dtype = option; }});
  }
  const std::string& rollback = question.options.state_rollback;
  if (rollback == "snapshots" || rollback == "replay") {
    out.push_back({"--state-rollback auto", [](PlanQuestion& q) { q.options.state_rollback = "auto"; }});
  }
  AddDraft(question, out);
  return out;
}

std::vector<Change> ChangesOf(const PlanQuestion& question) {
  std::vector<Change> out;
  AddDcp(question, out);
  for (Change& change : ChangesBesideDcp(question)) out.push_back(std::move(change));
  return out;
}

}  // namespace kvasir
