#include "worker/comm/hello.h"

#include <cstring>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "worker/comm/comm_errors.h"

namespace kvasir {
namespace {

constexpr std::string_view kMagic = "KVCM";

void PutInt(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
}

void PutText(std::string& out, const std::string& text) {
  PutInt(out, text.size(), 2);
  out += text;
}

// Reads from the front; after the first fault everything reads as zero and `ok` is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t Int(std::size_t bytes) {
    if (!Need(bytes)) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
    rest_ = rest_.subspan(bytes);
    return value;
  }

  std::string Text() {
    const auto size = static_cast<std::size_t>(Int(2));
    if (!Need(size)) return "";
    std::string text(size, '\0');
    if (size > 0) std::memcpy(text.data(), rest_.data(), size);
    rest_ = rest_.subspan(size);
    return text;
  }

  [[nodiscard]] bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  bool Need(std::size_t bytes) {
    ok_ = ok_ && rest_.size() >= bytes;
    return ok_;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace

std::string EncodeHello(const Hello& hello) {
  std::string body;
  PutInt(body, static_cast<std::uint64_t>(hello.epoch.value()), 8);
  PutInt(body, static_cast<std::uint32_t>(hello.ranks), 4);
  PutInt(body, static_cast<std::uint32_t>(hello.from), 4);
  PutInt(body, static_cast<std::uint32_t>(hello.to), 4);
  PutText(body, hello.deployment);
  PutText(body, hello.plan_id);
  std::string out(kMagic);
  PutInt(out, kCommVersion, 2);
  PutInt(out, body.size(), 2);
  return out + body;
}

std::string EncodeVersion() {
  std::string out(kMagic);
  PutInt(out, kCommVersion, 2);
  PutInt(out, 0, 2);
  return out;
}

absl::StatusOr<std::size_t> ParseHelloHead(std::span<const std::byte> head, std::int32_t peer) {
  if (head.size() != kHelloHeadBytes || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    return absl::InvalidArgumentError("the peer does not speak the protocol of ranks");
  }
  Reader reader(head.subspan(kMagic.size()));
  const std::uint64_t version = reader.Int(2);
  if (version != kCommVersion) {
    return RanksDisagree(peer, "comm.version", std::to_string(version), std::to_string(kCommVersion));
  }
  const auto size = static_cast<std::size_t>(reader.Int(2));
  if (size > kHelloBodyMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a greeting of %d bytes; at most %d", size, kHelloBodyMax));
  }
  return size;
}

absl::StatusOr<Hello> ParseHelloBody(std::span<const std::byte> body) {
  Reader reader(body);
  Hello hello;
  hello.epoch = Epoch(static_cast<std::int64_t>(reader.Int(8)));
  hello.ranks = static_cast<std::int32_t>(reader.Int(4));
  hello.from = static_cast<std::int32_t>(reader.Int(4));
  hello.to = static_cast<std::int32_t>(reader.Int(4));
  hello.deployment = reader.Text();
  hello.plan_id = reader.Text();
  const bool sound = reader.AtEnd() && hello.epoch.value() > 0 && hello.ranks > 0 &&
                     hello.ranks <= kRanksMax && hello.from >= 0 && hello.from < hello.ranks &&
                     hello.to >= 0 && hello.to < hello.ranks && hello.from != hello.to;
  if (!sound) return absl::InvalidArgumentError("a greeting whose fields make no sense");
  return hello;
}

absl::Status CheckSamePlan(const Hello& self, const Hello& peer) {
  const Hello& low = self.from < peer.from ? self : peer;
  const Hello& high = self.from < peer.from ? peer : self;
  if (high.plan_id != low.plan_id) return RanksDisagree(high.from, "plan_id", high.plan_id, low.plan_id);
  if (high.ranks != low.ranks) {
    return RanksDisagree(high.from, "ranks", std::to_string(high.ranks), std::to_string(low.ranks));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
