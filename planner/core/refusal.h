// A refusal is a value: which rule, about whom, with which numbers, and the ways out. Its text, its gRPC
// error details and docs/generated/refusals.md all come from the one table in refusal_table.cc.
#ifndef KVASIR_PLANNER_CORE_REFUSAL_H_
#define KVASIR_PLANNER_CORE_REFUSAL_H_

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

// The closed list. New rules go to the end of their block; the order is the order of a report.
enum class RuleId : std::int16_t {
  // The request's form.
  kRulesetUnknown,
  kValueOutOfRange,
  kInvalidName,
  kModelDigestInvalid,
  kNoTargetLayers,
  kDuplicateLayerId,
  kDuplicateLayerName,
  kDuplicateRegistrationIndex,
  kRoleMismatch,
  kLayoutInconsistent,
  kLifetimeMismatch,
  kDtypeUnknown,
  kTooManyPools,
  kCacheKindUnsupported,
  // Topology and ranks.
  kHeadsNotDivisibleByTp,
  kDcpNotDividingTp,
  kInterleaveNotDividingBlock,
  kRankMissing,
  kRankDuplicate,
  kRankOutOfRange,
  kWindowLayerSharded,
  kStateLayerSharded,
  // Target and draft together.
  kContextOverModelLimit,
  kTargetNotCausal,
  kDraftMissing,
  kDraftTokensMissing,
  kDraftTokensOutOfRange,
  kDraftTapBeyondTarget,
  kDraftHiddenMismatch,
  kDraftVocabularyMismatch,
  kDraftTargetLayersMismatch,
  kBlockRowsMismatch,
  // Backends.
  kBackendDuplicate,
  kBackendUnknown,
  kBackendLayoutUnsupported,
  kBackendDtypeUnsupported,
  kBackendCausalMultiToken,
  kBackendCausalMultiTokenDcp,
  kDraftBackendNonCausal,
  kDraftBackendNonCausalDcp,
  kBackendLseMissing,
  kBackendGraphsMissing,
  kNoCommonPageSize,
  kBackendHeadsUnsupported,
  kBackendBlockRowsUnsupported,
  // Recurrent state.
  kRollbackRequired,
  kRollbackReplayWithoutRing,
  // Comparisons of two layers; never part of an outcome.
  kPoolKeysDiffer,
  kGroupKeysDiffer,
};

struct Operand {
  std::string name;  // a placeholder of the rule's message
  std::string value;
  friend auto operator<=>(const Operand&, const Operand&) = default;
};

struct Refusal {
  RuleId rule = RuleId::kValueOutOfRange;
  std::string field;                  // of the request: "topology.dcp"
  std::vector<std::string> subjects;  // layer, rank, backend or model names
  std::vector<Operand> operands;
  std::vector<std::string> remedies;  // best first; full clauses: "set topology.dcp to a divisor of 8"
  friend auto operator<=>(const Refusal&, const Refusal&) = default;
};

// One row of the table. Templates hold {operand} placeholders; {subjects} and {field} are always known.
struct RuleRow {
  RuleId id;
  std::string_view name;   // UPPER_SNAKE; the reason in gRPC error details
  std::string_view field;  // "*": the refusal names it
  std::string_view why;    // for the rule page: why the rule exists, one sentence
  std::string_view message;
  std::array<std::string_view, 3> remedies;  // best first; unused places are empty
};

// Every rule, in the order of RuleId.
[[nodiscard]] std::span<const RuleRow> RuleTable();
[[nodiscard]] const RuleRow& RowOf(RuleId rule);
[[nodiscard]] std::string_view RuleName(RuleId rule);

// A refusal whose field and remedies come from the table. `field` only where the row's field is "*".
[[nodiscard]] Refusal MakeRefusal(RuleId rule, std::vector<std::string> subjects,
                                  std::vector<Operand> operands, std::string_view field = "");

// "the draft decodes ...": one sentence without the rule's name. Total: an unknown placeholder stays as it
// is.
[[nodiscard]] std::string RefusalText(const Refusal& refusal);

// By (rule, subjects, ...), without repetitions.
void SortRefusals(std::vector<Refusal>& refusals);

// The page docs/generated/refusals.md.
[[nodiscard]] std::string RefusalPage();

// Factories for what only the front end can see.
// `what` is "attention heads", "key-value heads" or "recurrent heads" of the layer or model `subject`;
// `possible` lists the numbers of ranks that divide the heads of all layers, "1, 2, 4".
[[nodiscard]] Refusal HeadsNotDivisibleByTp(std::string subject, std::string what, std::int64_t heads,
                                            std::int64_t tp, std::string possible);
[[nodiscard]] Refusal DtypeUnknown(std::string_view field, std::string word);
// `layers` names them; `kind` is a word of common/models/mixer_shapes.h.
[[nodiscard]] Refusal CacheKindUnsupported(std::vector<std::string> layers, std::string kind,
                                           std::string reason);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_REFUSAL_H_
