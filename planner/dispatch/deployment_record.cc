// Grammar of the text, one field a line, in this order:
//   kvasir-deployment 1
//   <key> <integer>            a number
//   <key> <bytes> <raw bytes>  a string: its length, a space, the bytes, so that any text can stand inside
//   <key> absent|present       an optional part; its fields follow when present. A part that came later
//   stands
//                              there only when present, so that older records read as they are
//   sha256 <64 hex digits>     of everything before this line
#include "planner/dispatch/deployment_record.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/sha256.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr char kHeader[] = "kvasir-deployment 1\n";
constexpr std::int64_t kListMax = 4096;

// Writes fields; Reader below has the same interface, so that one Visit function defines both directions.
class Writer {
 public:
  void Integer(std::string_view key, const std::int64_t& value) {
    text_ += absl::StrFormat("%s %d\n", key, value);
  }
  void String(std::string_view key, const std::string& value) {
    text_ += absl::StrFormat("%s %d %s\n", key, value.size(), value);
  }
  bool Present(std::string_view key, bool present) {
    text_ += absl::StrFormat("%s %s\n", key, present ? "present" : "absent");
    return present;
  }
  bool LaterPresent(std::string_view key, bool present) { return present && Present(key, true); }
  [[nodiscard]] std::string Take() && { return std::move(text_); }

 private:
  std::string text_ = kHeader;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) { Expect(kHeader); }

  void Integer(std::string_view key, std::int64_t& value) {
    Key(key);
    value = Number('\n');
  }
  void String(std::string_view key, std::string& value) {
    Key(key);
    const std::int64_t size = Number(' ');
    if (!ok_ || size < 0 || static_cast<std::size_t>(size) > rest_.size()) {
      return Fail("a length within the file");
    }
    value = std::string(rest_.substr(0, static_cast<std::size_t>(size)));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    Expect("\n");
  }
  bool Present(std::string_view key, bool /*present*/) {
    Key(key);
    const bool present = rest_.substr(0, 8) == "present\n";
    Expect(present ? "present\n" : "absent\n");
    return ok_ && present;
  }
  bool LaterPresent(std::string_view key, bool /*present*/) {
    return ok_ && rest_.starts_with(std::string(key) + " ") && Present(key, true);
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] const std::string& wanted() const { return wanted_; }

 private:
  void Fail(std::string wanted) {
    if (ok_) {
      wanted_ = std::move(wanted);
    }
    ok_ = false;
  }
  void Expect(std::string_view what) {
    if (!ok_ || rest_.substr(0, what.size()) != what) {
      return Fail(absl::StrFormat("\"%s\"", what.substr(0, what.size() - (what.back() == '\n' ? 1 : 0))));
    }
    rest_.remove_prefix(what.size());
  }
  void Key(std::string_view key) { Expect(std::string(key) + " "); }
  std::int64_t Number(char end) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (!ok_ || error != std::errc() || stop == rest_.data() + rest_.size() || *stop != end) {
      Fail("a number");
      return 0;
    }
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()) + 1);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
  std::string wanted_;
};

// A value of another integer type or bool, through std::int64_t.
template <class Archive, class T>
void Narrow(Archive& archive, std::string_view key, T& value) {
  auto wide = static_cast<std::int64_t>(value);
  archive.Integer(key, wide);
  value = static_cast<T>(wide);
}

template <class Archive>
void VisitEpoch(Archive& archive, std::string_view key, Epoch& epoch) {
  std::int64_t value = epoch.value();
  archive.Integer(key, value);
  epoch = Epoch(value);
}

template <class Archive, class Item, class VisitItem>
void VisitList(Archive& archive, std::string_view key, std::vector<Item>& items, VisitItem visit) {
  auto count = static_cast<std::int64_t>(items.size());
  archive.Integer(key, count);
  if (count < 0 || count > kListMax) {
    count = 0;
  }
  items.resize(static_cast<std::size_t>(count));
  for (Item& item : items) {
    visit(archive, item);
  }
}

template <class Archive>
void VisitSpec(Archive& archive, ApplySpec& spec) {
  archive.String("plan_id", spec.plan_id);
  archive.String("plan_text", spec.plan_text);
  archive.String("target_model_text", spec.target_model_text);
  archive.String("draft_model_text", spec.draft_model_text);
  archive.Integer("weight_seed", spec.weight_seed);
  VisitList(archive, "workers", spec.workers, [](Archive& a, WorkerTarget& worker) {
    a.String("address", worker.address);
    VisitList(a, "ranks", worker.ranks,
              [](Archive& inner, std::int32_t& rank) { Narrow(inner, "rank", rank); });
  });
  archive.Integer("prepare_ms", spec.times.prepare_ms);
  archive.Integer("commit_ms", spec.times.commit_ms);
  archive.Integer("drain_ms", spec.times.drain_ms);
  archive.Integer("comm_ms", spec.times.comm_ms);
  if (archive.LaterPresent("checkpoint", !spec.target_checkpoint.empty())) {
    archive.String("target_checkpoint", spec.target_checkpoint);
    archive.String("draft_checkpoint", spec.draft_checkpoint);
  }
}

template <class Archive>
void VisitPending(Archive& archive, PendingApply& pending) {
  VisitEpoch(archive, "epoch", pending.epoch);
  Narrow(archive, "phase", pending.phase);
  VisitSpec(archive, pending.spec);
  if (archive.Present("fallback", pending.fallback.has_value())) {
    pending.fallback = pending.fallback.value_or(ApplySpec());
    VisitSpec(archive, *pending.fallback);
  }
  Narrow(archive, "restoring", pending.restoring);
  Narrow(archive, "deleting", pending.deleting);
  archive.String("request_id", pending.request_id);
}

template <class Archive>
void VisitRecord(Archive& archive, DeploymentRecord& record) {
  archive.String("name", record.name);
  archive.Integer("version", record.version);
  VisitEpoch(archive, "max_epoch", record.max_epoch);
  Narrow(archive, "deleted", record.deleted);
  if (archive.Present("serving", record.serving.has_value())) {
    record.serving = record.serving.value_or(ServingPlan());
    VisitEpoch(archive, "epoch", record.serving->epoch);
    VisitSpec(archive, record.serving->spec);
  }
  if (archive.Present("pending", record.pending.has_value())) {
    record.pending = record.pending.value_or(PendingApply());
    VisitPending(archive, *record.pending);
  }
  Narrow(archive, "error_code", record.last_error.code);
  archive.String("error_reason", record.last_error.reason);
  archive.String("error_message", record.last_error.message);
  archive.Integer("update_wall_ms", record.update_wall_ms);
}

std::string ChecksumLine(std::string_view body) { return absl::StrFormat("sha256 %s\n", Sha256Hex(body)); }

absl::Status Corrupt(std::string what) {
  return MakeError(
      {.code = absl::StatusCode::kDataLoss, .reason = reason::kStoreCorrupt, .message = std::move(what)});
}

}  // namespace

std::string_view PendingPhaseName(PendingPhase phase) {
  switch (phase) {
    case PendingPhase::kReleasing:
      return "releasing";
    case PendingPhase::kPreparing:
      return "preparing";
    case PendingPhase::kCommitting:
      return "committing";
    case PendingPhase::kAborting:
      return "aborting";
    case PendingPhase::kRetiring:
      return "retiring";
  }
  return "invalid";
}

std::string RecordToText(const DeploymentRecord& record) {
  Writer writer;
  DeploymentRecord copy = record;
  VisitRecord(writer, copy);
  std::string text = std::move(writer).Take();
  return text + ChecksumLine(text);
}

absl::StatusOr<DeploymentRecord> RecordFromText(std::string_view text) {
  const std::size_t line_bytes = ChecksumLine("").size();
  if (text.size() < line_bytes) {
    return Corrupt("the record is cut short");
  }
  const std::string_view body = text.substr(0, text.size() - line_bytes);
  if (text.substr(body.size()) != ChecksumLine(body)) {
    return Corrupt("the record's checksum does not match its content");
  }
  Reader reader(body);
  DeploymentRecord record;
  VisitRecord(reader, record);
  if (!reader.ok() || !reader.at_end()) {
    return Corrupt(absl::StrFormat("the record has something else where %s was expected",
                                   reader.ok() ? std::string("its end") : reader.wanted()));
  }
  if (record.pending.has_value() && PendingPhaseName(record.pending->phase) == "invalid") {
    return Corrupt("the record has an unknown phase");
  }
  if (RecordToText(record) != text) {
    return Corrupt("the record has a value out of range");
  }
  return record;
}

}  // namespace kvasir
