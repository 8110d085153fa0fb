#include "worker/comm/facts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "worker/comm/comm_errors.h"

namespace kvasir {
namespace {

constexpr char kUnset[] = "unset";
constexpr std::int64_t kFactsBytesMax = kFactsMax * 2 * (kNameBytesMax + 8);

std::string ValueOf(const RankFacts& facts, const std::string& name) {
  const auto found =
      std::find_if(facts.begin(), facts.end(), [&](const RankFact& f) { return f.name == name; });
  return found == facts.end() ? std::string(kUnset) : found->value;
}

// facts := (length ':' bytes){2 * n}: name, value, name, value, ... Lengths are decimal.
std::string Encode(const RankFacts& facts) {
  std::string text;
  for (const RankFact& fact : facts) {
    for (const std::string* part : {&fact.name, &fact.value}) {
      text += absl::StrFormat("%d:%s", part->size(), *part);
    }
  }
  return text;
}

absl::Status Garbled(std::int64_t rank) {
  return absl::InvalidArgumentError(absl::StrFormat("the facts of rank %d cannot be read", rank));
}

std::optional<std::string> TakePart(std::string_view& text) {
  std::size_t size = 0;
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 4) {
    size = size * 10 + static_cast<std::size_t>(text[digits++] - '0');
  }
  if (digits == 0 || digits >= text.size() || text[digits] != ':') return std::nullopt;
  text.remove_prefix(digits + 1);
  if (size > static_cast<std::size_t>(kNameBytesMax) || size > text.size()) return std::nullopt;
  std::string part(text.substr(0, size));
  text.remove_prefix(size);
  return part;
}

std::optional<RankFacts> Decode(std::string_view text) {
  RankFacts facts;
  while (!text.empty()) {
    if (facts.size() == static_cast<std::size_t>(kFactsMax)) return std::nullopt;
    std::optional<std::string> name = TakePart(text);
    std::optional<std::string> value = name.has_value() ? TakePart(text) : std::nullopt;
    if (!value.has_value()) return std::nullopt;
    facts.push_back({*std::move(name), *std::move(value)});
  }
  return facts;
}

absl::Status CheckLimits(const RankFacts& facts) {
  if (facts.size() > static_cast<std::size_t>(kFactsMax)) {
    return absl::InvalidArgumentError(absl::StrFormat("%d facts; at most %d", facts.size(), kFactsMax));
  }
  for (const RankFact& fact : facts) {
    for (const std::string* part : {&fact.name, &fact.value}) {
      if (part->size() > static_cast<std::size_t>(kNameBytesMax)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("fact %s is longer than %d bytes", part->substr(0, 32), kNameBytesMax));
      }
    }
  }
  return absl::OkStatus();
}

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::optional<Disagreement> FindDisagreement(const std::vector<RankFacts>& by_rank) {
  std::set<std::string> names;
  for (const RankFacts& facts : by_rank) {
    for (const RankFact& fact : facts) names.insert(fact.name);
  }
  for (const std::string& name : names) {
    std::map<std::string, std::int64_t> counts;
    for (const RankFacts& facts : by_rank) ++counts[ValueOf(facts, name)];
    if (counts.size() == 1) continue;
    std::string common = ValueOf(by_rank.front(), name);
    for (const RankFacts& facts : by_rank) {
      const std::string value = ValueOf(facts, name);
      if (counts[value] > counts[common]) common = value;
    }
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const std::string value = ValueOf(by_rank[rank], name);
      if (value != common) return Disagreement{static_cast<std::int64_t>(rank), name, value, common};
    }
  }
  return std::nullopt;
}

absl::Status AgreeOnFacts(Communicator& comm, const RankFacts& mine) {
  KVASIR_RETURN_IF_ERROR(CheckLimits(mine));
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::string text = Encode(mine);
  const auto size = static_cast<std::int64_t>(text.size());
  std::vector<std::int64_t> sizes(ranks);
  KVASIR_RETURN_IF_ERROR(
      comm.AllGather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes))));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (sizes[rank] < 0 || sizes[rank] > kFactsBytesMax) return Garbled(static_cast<std::int64_t>(rank));
  }
  const auto padded = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  text.resize(padded, '\0');
  std::string all(padded * ranks, '\0');
  KVASIR_RETURN_IF_ERROR(comm.AllGather(BytesOf(text), std::as_writable_bytes(std::span(all))));
  std::vector<RankFacts> by_rank;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::optional<RankFacts> facts =
        Decode(std::string_view(all).substr(rank * padded, static_cast<std::size_t>(sizes[rank])));
    if (!facts.has_value()) return Garbled(static_cast<std::int64_t>(rank));
    by_rank.push_back(*std::move(facts));
  }
  if (const std::optional<Disagreement> found = FindDisagreement(by_rank)) {
    return RanksDisagree(found->rank, found->fact, found->value, found->others);
  }
  return absl::OkStatus();
}

}  // namespace kvasir
