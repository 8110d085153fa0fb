#include "tests/tools/waste_rows.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "common/models/catalogue.h"
#include "common/models/draft_of.h"
#include "planner/core/canonical.h"
#include "planner/core/capacity.h"
#include "planner/core/outcome.h"
#include "planner/core/refusal.h"
#include "planner/core/validated.h"
#include "planner/questions/engine_modes.h"
#include "planner/request/backends.h"
#include "planner/rulesets/make_plan.h"
#include "planner/rulesets/native/native.h"
#include "planner/rulesets/native/size_problem.h"

namespace kvasir::testing {
namespace {

constexpr std::array<std::int64_t, 3> kLengths = {8192, 32768, 131072};
constexpr std::array<std::int64_t, 2> kMemories = {50251117363, 21474836480};  // 46.8 and 20 GiB
constexpr std::array<std::int64_t, 4> kTps = {8, 4, 2, 1};
constexpr std::string_view kOwnLayers = "mtp";

struct Pair {
  std::string_view draft;
  std::string_view target;
};
// Whose drafts the catalogue's drafts are.
constexpr Pair kPairs[] = {{"deepseek-v3-eagle3", "deepseek-v3"},   {"demo-dspark", "demo-target"},
                           {"glm-5.2-dspark", "glm-5.2"},           {"gpt-oss-120b-eagle3", "gpt-oss-120b"},
                           {"kimi-k3-dspark", "kimi-k3"},           {"kimi-k3-dspark-gqa", "kimi-k3"},
                           {"llama-3.1-8b-eagle3", "llama-3.1-8b"}, {"qwen3-4b-dflare", "qwen3-4b"},
                           {"qwen3-4b-dspark", "qwen3-4b"},         {"qwen3-8b-dflash", "qwen3-8b"},
                           {"qwen3-8b-dspark", "qwen3-8b"},         {"qwen3-8b-eagle3", "qwen3-8b"},
                           {"qwen3.6-27b-dflash", "qwen3.5-27b"}};

PlanQuestion QuestionOf(const ModelDescription& target, const std::optional<ModelDescription>& draft,
                        std::int64_t tp, std::int64_t dcp, std::int64_t memory) {
  PlanQuestion question{.target = target, .draft = draft, .options = {}};
  PlanOptions& options = question.options;
  options.tp = tp;
  options.dcp = dcp;
  options.kv_memory_bytes = {memory};
  const std::int64_t limit = target.context > 0 ? target.context : kLengths.back();
  options.contexts = {std::min(kLengths.back(), limit)};
  if (draft.has_value() && draft->draft.has_value()) options.draft_tokens = TrainedTokens(*draft->draft);
  return question;
}

std::vector<Refusal> RefusalsOf(const PlanQuestion& question) {
  std::variant<Validated, Refusals> checked = Validate(Canonicalize(RequestOf(question)));
  auto* refused = std::get_if<Refusals>(&checked);
  return refused == nullptr ? std::vector<Refusal>{} : std::move(refused->refusals);
}

// The floor at each of kLengths, for the rollback that the plan chose.
std::array<std::int64_t, 3> FloorsOf(const PlanQuestion& question, StateRollback rollback) {
  std::variant<Validated, Refusals> checked = Validate(Canonicalize(RequestOf(question)));
  const Packed packed = native::PackBlocks(native::GroupLayers(std::get<Validated>(std::move(checked))));
  std::array<std::int64_t, 3> floors = {};
  for (const PackedVariant& variant : packed.variants) {
    if (variant.rollback != rollback) continue;
    const native::SearchProblem problem = native::ProblemOf(packed, variant, native::QuestionOf(packed));
    for (std::size_t i = 0; i < floors.size(); ++i) floors[i] = problem.arena_bytes / problem.payload[i];
  }
  return floors;
}

void AddEngine(const PlanQuestion& question, WasteCell& cell) {
  const std::vector<std::int64_t> contexts = {cell.context_tokens};
  const EngineComparison engine = CountUnderEngine(question, vllm::EngineVersion::k2026_11, contexts);
  if (engine.lengths.empty()) return;
  for (const EngineCount& count : engine.lengths.front().counts) {
    switch (count.mode) {
      case EngineMode::kMerged:
        cell.merged = count.requests;
        cell.merged_bytes = count.bytes_per_request;
        break;
      case EngineMode::kApart:
        cell.apart = count.requests;
        break;
      case EngineMode::kRecoverSsm:
        // A column of its own only where it changes something.
        if (count.requests != cell.merged) cell.recover_ssm = count.requests;
        break;
    }
  }
}

WasteRow RowOf(const std::string& target, const std::string& draft, const PlanQuestion& question) {
  WasteRow row;
  row.target = target;
  row.draft = draft;
  row.tp = question.options.tp;
  row.dcp = question.options.dcp;
  row.memory_bytes = question.options.kv_memory_bytes[0];
  const PlanOutcome outcome = MakePlan(RequestOf(question));
  const auto* planned = std::get_if<Planned>(&outcome);
  if (planned == nullptr) return row;
  row.fits = true;
  const std::array<std::int64_t, 3> floors = FloorsOf(question, planned->plan.rollback);
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    WasteCell cell;
    cell.context_tokens = std::min(kLengths[i], planned->plan.context_tokens);
    if (!row.cells.empty() && row.cells.back().context_tokens == cell.context_tokens) break;
    const CapacityRow capacity = CapacityAt(planned->plan, cell.context_tokens);
    cell.floor = floors[i];
    cell.native = capacity.requests;
    cell.native_bytes = capacity.bytes_per_request.value();
    AddEngine(question, cell);
    row.cells.push_back(cell);
  }
  return row;
}

// Sets the default kernels, or the first of the table that take what the models keep; false: none do.
bool ChooseBackends(PlanQuestion& question) {
  PlanOptions& options = question.options;
  const std::vector<Refusal> refusals = RefusalsOf(question);
  const bool about_kernels = std::all_of(refusals.begin(), refusals.end(), [](const Refusal& refusal) {
    return refusal.rule >= RuleId::kBackendUnknown && refusal.rule <= RuleId::kBackendBlockRowsUnsupported;
  });
  if (refusals.empty() || !about_kernels) return refusals.empty();
  std::vector<std::string> names = {""};
  for (const BackendFacts& facts : BackendTable()) names.push_back(facts.name);
  for (const std::string& target : names) {
    for (const std::string& draft : names) {
      if (!draft.empty() && !question.draft.has_value()) break;
      options.target_backend = target;
      options.draft_backend = draft;
      if (RefusalsOf(question).empty()) return true;
    }
  }
  return false;
}

// The most ranks that the models can be divided by, and with latent caches alone also one copy of them.
void AddRows(const std::string& target, const std::string& draft, const ModelDescription& model,
             const std::optional<ModelDescription>& draft_model, std::vector<WasteRow>& rows) {
  for (const std::int64_t tp : kTps) {
    bool any = false;
    for (const std::int64_t dcp : {std::int64_t{1}, tp}) {
      PlanQuestion question = QuestionOf(model, draft_model, tp, dcp, kMemories[0]);
      if ((any && dcp == 1) || !ChooseBackends(question)) continue;
      any = true;
      for (const std::int64_t memory : kMemories) {
        question.options.kv_memory_bytes = {memory};
        rows.push_back(RowOf(target, draft, question));
      }
    }
    if (any) return;
  }
  WasteRow& row = rows.emplace_back();
  row.target = target;
  row.draft = draft;
  row.refusal = RuleName(RefusalsOf(QuestionOf(model, draft_model, 1, 1, kMemories[0])).front().rule);
}

}  // namespace

std::vector<WasteRow> WasteRows() {
  std::vector<WasteRow> rows;
  for (const CatalogueEntry& entry : ListCatalogue()) {
    if (entry.draft) continue;
    const ModelDescription target = *FindInCatalogue(entry.name);
    AddRows(entry.name, "", target, std::nullopt, rows);
    for (const Pair& pair : kPairs) {
      if (pair.target != entry.name) continue;
      AddRows(entry.name, std::string(pair.draft), target, *FindInCatalogue(pair.draft), rows);
    }
    if (const auto own = MtpDraft(target); own.ok())
      AddRows(entry.name, std::string(kOwnLayers), target, *own, rows);
  }
  return rows;
}

}  // namespace kvasir::testing
