#include "worker/engine/step_agreement.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::int64_t kNoFault = -1;

// What a rank says. Two words of 64 bits, so that there is no padding to compare or send.
struct Report {
  std::int64_t fault_pass = kNoFault;
  std::uint64_t digest = 0;
};

// FNV-1a over the numbers of the outcome.
class Digest {
 public:
  void Add(std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash_ ^= (static_cast<std::uint64_t>(value) >> shift) & 0xffU;
      hash_ *= 0x100000001b3U;
    }
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

std::uint64_t DigestOf(const StepOutcome& outcome) {
  Digest digest;
  digest.Add(outcome.step);
  for (const SequenceOutcome& sequence : outcome.sequences) {
    digest.Add(sequence.id.value());
    digest.Add(sequence.drafted);
    digest.Add(sequence.accepted);
    for (const std::int32_t token : sequence.emitted) digest.Add(token);
    for (const float logprob : sequence.logprobs) digest.Add(std::bit_cast<std::int32_t>(logprob));
  }
  return digest.value();
}

// A peer's number is not an enum value until it was looked up.
std::string FaultPassName(std::int64_t number) {
  for (const Pass pass : {Pass::kTargetPrefill, Pass::kTargetDecode, Pass::kTargetVerify, Pass::kDraftContext,
                          Pass::kDraftBlock}) {
    if (number == static_cast<std::int64_t>(pass)) return std::string(PassName(pass));
  }
  return "an unknown pass";
}

}  // namespace

absl::Status AgreeOnStep(Communicator* communicator, const StepOutcome& outcome, std::optional<Pass> fault) {
  const Report mine{.fault_pass = fault.has_value() ? static_cast<std::int64_t>(*fault) : kNoFault,
                    .digest = DigestOf(outcome)};
  std::vector<Report> all = {mine};
  if (communicator != nullptr) {
    all.resize(static_cast<std::size_t>(communicator->size()));
    KVASIR_RETURN_IF_ERROR(
        communicator->AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].fault_pass == kNoFault) continue;
    return MakeError({.code = absl::StatusCode::kDataLoss,
                      .reason = reason::kNotANumber,
                      .message = absl::StrFormat("rank %d: NON_FINITE: %s of step %d met NaN or +inf", rank,
                                                 FaultPassName(all[rank].fault_pass), outcome.step),
                      .metadata = {{"rank", std::to_string(rank)}}});
  }
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].digest == all[0].digest) continue;
    return absl::InternalError(
        absl::StrFormat("rank %d computed other tokens than rank 0 in step %d", rank, outcome.step));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
