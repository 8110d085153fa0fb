#include "common/checkpoint/safetensors_header.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/header_events.h"

namespace kvasir {
namespace {

constexpr std::int64_t kLengthBytes = 8;

absl::Status Invalid(std::string_view file, std::string_view tensor, std::string value, std::string fix) {
  return ToStatus(
      {reason::kCheckpointInvalid, std::string(file), std::string(tensor), std::move(value), std::move(fix)});
}

// The length in the first 8 bytes, checked against the file.
absl::StatusOr<std::int64_t> HeaderLength(std::string_view bytes, std::string_view file) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size < kLengthBytes) {
    return Invalid(file, "", absl::StrFormat("%d bytes", size),
                   "shorter than the 8 bytes of a header's length; the file is truncated");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kLengthBytes); ++i) {
    length |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  if (length > static_cast<std::uint64_t>(kHeaderBytesMax)) {
    return Invalid(file, "", absl::StrFormat("header of %d bytes", length),
                   absl::StrFormat("at most %d are read; this is no safetensors file", kHeaderBytesMax));
  }
  if (static_cast<std::int64_t>(length) > size - kLengthBytes) {
    return Invalid(
        file, "", absl::StrFormat("header of %d bytes", length),
        absl::StrFormat("the file ends %d bytes behind its length; it is truncated", size - kLengthBytes));
  }
  return static_cast<std::int64_t>(length);
}

std::string OffsetsText(const TensorEntry& entry) {
  return absl::StrFormat("data_offsets [%d, %d]", entry.begin, entry.end);
}

// Shape, type and offsets of one tensor.
absl::Status CheckEntry(const TensorEntry& entry, std::int64_t data_bytes, std::string_view file) {
  std::optional<std::int64_t> bytes = StoredTypeBytes(entry.type);
  for (const std::int64_t size : entry.shape) {
    if (bytes.has_value()) bytes = CheckedMul(*bytes, size);
  }
  if (!bytes.has_value()) {
    return Invalid(file, entry.name, "shape " + ShapeText(entry.shape), "its bytes overflow 64 bits");
  }
  if (entry.begin > entry.end) return Invalid(file, entry.name, OffsetsText(entry), "begin is behind end");
  if (entry.end - entry.begin != *bytes) {
    return Invalid(
        file, entry.name, OffsetsText(entry),
        absl::StrFormat("they span %d bytes; %s elements of shape %s take %d", entry.end - entry.begin,
                        StoredTypeName(entry.type), ShapeText(entry.shape), *bytes));
  }
  if (entry.end > data_bytes) {
    return Invalid(file, entry.name, OffsetsText(entry),
                   absl::StrFormat("the file holds %d bytes behind its header; it is truncated", data_bytes));
  }
  return absl::OkStatus();
}

// Together the tensors cover the data, each byte once.
absl::Status CheckCover(std::vector<TensorEntry>& tensors, std::int64_t data_bytes, std::string_view file) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::int64_t covered = 0;
  std::string_view before;
  for (const TensorEntry& entry : tensors) {
    if (entry.begin < covered) {
      return Invalid(file, entry.name, OffsetsText(entry),
                     absl::StrFormat("it overlaps tensor %s, which ends at %d", before, covered));
    }
    if (entry.begin > covered) {
      return Invalid(file, entry.name, OffsetsText(entry),
                     absl::StrFormat("bytes %d to %d before it belong to no tensor", covered, entry.begin));
    }
    covered = entry.end;
    before = entry.name;
  }
  if (covered < data_bytes) {
    return Invalid(file, "", absl::StrFormat("%d bytes of data", data_bytes),
                   absl::StrFormat("its tensors end at %d; the rest belongs to no tensor", covered));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(std::vector<TensorEntry>& tensors, std::string_view file) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(tensors.begin(), tensors.end(),
                         [](const TensorEntry& a, const TensorEntry& b) { return a.name == b.name; });
  if (twice != tensors.end()) return Invalid(file, twice->name, "", "the header names it twice");
  return absl::OkStatus();
}

}  // namespace

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return absl::StrFormat("[%s]", absl::StrJoin(shape, ", "));
}

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(std::string_view bytes, std::string_view file) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t length, HeaderLength(bytes, file));
  const std::string_view text = bytes.substr(kLengthBytes, static_cast<std::size_t>(length));
  if (text.empty() || text.front() != '{') {
    return Invalid(file, "", "", "the header does not begin with '{'; this is no safetensors file");
  }
  if (text.find('\0') != std::string_view::npos) {  // where the JSON reader would stop
    return Invalid(file, "", "a NUL byte", "the header is not valid JSON");
  }
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(text, &events)) {
    CheckpointError error = events.error().value_or(
        CheckpointError{.reason = reason::kCheckpointInvalid, .fix = "the header is not valid JSON"});
    error.file = file;
    return ToStatus(error);
  }
  SafetensorsHeader header = std::move(events.header());
  const std::int64_t data_begin = kLengthBytes + length;
  const std::int64_t data_bytes = static_cast<std::int64_t>(bytes.size()) - data_begin;
  KVASIR_RETURN_IF_ERROR(CheckNames(header.tensors, file));
  for (const TensorEntry& entry : header.tensors) {
    KVASIR_RETURN_IF_ERROR(CheckEntry(entry, data_bytes, file));
  }
  KVASIR_RETURN_IF_ERROR(CheckCover(header.tensors, data_bytes, file));
  KVASIR_RETURN_IF_ERROR(CheckNames(header.tensors, file));  // sorts them by name again
  for (TensorEntry& entry : header.tensors) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

}  // namespace kvasir
