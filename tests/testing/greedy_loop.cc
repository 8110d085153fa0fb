#include "tests/testing/greedy_loop.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace kvasir::testing {
namespace {

// One sequence's passes. `committed` is T: tokens whose target K/V is in the cache.
class Sequence {
 public:
  Sequence(ModelRanks& ranks, const GreedyOptions& options) : ranks_(ranks), options_(options) {}

  absl::StatusOr<PassResult> Pass(kvasir::Pass pass, std::vector<std::int32_t> tokens, std::int64_t position,
                                  std::int64_t valid, bool causal) {
    PassCall call;
    call.pass = pass;
    call.causal = causal;
    call.requests.push_back({std::move(tokens), position, valid, options_.blocks});
    return ranks_.Run(call);
  }

 private:
  ModelRanks& ranks_;
  const GreedyOptions& options_;
};

// Draft, verify, accept and write the draft's context. Returns the emitted tokens.
absl::StatusOr<std::vector<std::int32_t>> SpeculativeStep(Sequence& sequence, const GreedyOptions& options,
                                                          std::int32_t anchor, std::int64_t committed,
                                                          GreedyRun* run) {
  const std::size_t n = static_cast<std::size_t>(options.draft_tokens);
  std::vector<std::int32_t> block(n, options.mask_token);
  block[0] = anchor;
  KVASIR_ASSIGN_OR_RETURN(const PassResult draft, sequence.Pass(Pass::kDraftBlock, block, committed,
                                                                options.draft_tokens, /*causal=*/false));
  std::vector<std::int32_t> verify = {anchor};
  verify.insert(verify.end(), draft.drafted.begin(), draft.drafted.end());
  const std::int64_t rows = options.draft_tokens + 1;
  KVASIR_ASSIGN_OR_RETURN(const PassResult target, sequence.Pass(Pass::kTargetVerify, verify, committed, rows,
                                                                 /*causal=*/true));
  std::size_t accepted = 0;
  while (accepted < n && verify[accepted + 1] == target.next_ids[accepted]) ++accepted;
  run->drafted += options.draft_tokens;
  run->accepted += static_cast<std::int64_t>(accepted);
  KVASIR_RETURN_IF_ERROR(sequence
                             .Pass(Pass::kDraftContext, verify, committed,
                                   static_cast<std::int64_t>(accepted) + 1, /*causal=*/true)
                             .status());
  return std::vector<std::int32_t>(target.next_ids.begin(),
                                   target.next_ids.begin() + static_cast<std::ptrdiff_t>(accepted) + 1);
}

}  // namespace

absl::StatusOr<GreedyRun> RunGreedy(ModelRanks& ranks, const GreedyOptions& options) {
  Sequence sequence(ranks, options);
  const std::int64_t prompt = static_cast<std::int64_t>(options.prompt.size());
  KVASIR_ASSIGN_OR_RETURN(const PassResult prefill,
                          sequence.Pass(Pass::kTargetPrefill, options.prompt, 0, prompt, /*causal=*/true));
  if (options.draft_tokens > 0) {
    KVASIR_RETURN_IF_ERROR(
        sequence.Pass(Pass::kDraftContext, options.prompt, 0, prompt, /*causal=*/true).status());
  }
  GreedyRun run;
  run.tokens.push_back(prefill.next_ids.back());
  while (static_cast<std::int64_t>(run.tokens.size()) < options.tokens) {
    const std::int64_t committed = prompt + static_cast<std::int64_t>(run.tokens.size()) - 1;
    const std::int32_t anchor = run.tokens.back();
    if (options.draft_tokens == 0) {
      KVASIR_ASSIGN_OR_RETURN(const PassResult step,
                              sequence.Pass(Pass::kTargetDecode, {anchor}, committed, 1, /*causal=*/true));
      run.tokens.push_back(step.next_ids[0]);
      continue;
    }
    KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> emitted,
                            SpeculativeStep(sequence, options, anchor, committed, &run));
    run.tokens.insert(run.tokens.end(), emitted.begin(), emitted.end());
  }
  run.tokens.resize(static_cast<std::size_t>(options.tokens));
  return run;
}

}  // namespace kvasir::testing
