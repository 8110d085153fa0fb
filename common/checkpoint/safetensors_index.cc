#include "common/checkpoint/safetensors_index.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/safetensors_header.h"

namespace kvasir {
namespace {

constexpr std::string_view kSuffix = ".safetensors";

bool IsBareFileName(std::string_view name) {
  if (!name.ends_with(kSuffix) || name.starts_with('.')) return false;
  if (static_cast<std::int64_t>(name.size()) > kFileNameBytesMax) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '/' && c != '\\'; });
}

class IndexEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  [[nodiscard]] SafetensorsIndex& index() { return index_; }
  [[nodiscard]] const std::optional<CheckpointError>& error() const { return error_; }
  [[nodiscard]] bool saw_map() const { return saw_map_; }

  bool null() override { return Other("null"); }
  bool boolean(bool value) override { return Other(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Other(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Other(std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return Other(text); }
  bool binary(binary_t& /*value*/) override { return Other("binary data"); }

  bool string(string_t& value) override {
    if (place_ != Place::kMap) return Other("\"" + value + "\"");
    if (!IsBareFileName(value)) {
      return Fail("file \"" + value + "\"",
                  absl::StrFormat("expected a file of this directory: a bare name that ends in %s, of at "
                                  "most %d printable characters",
                                  kSuffix, kFileNameBytesMax));
    }
    index_.files.insert(value);
    if (static_cast<std::int64_t>(index_.files.size()) > kCheckpointFilesMax) {
      return Fail("", absl::StrFormat("more than %d files", kCheckpointFilesMax));
    }
    if (!index_.file_of.emplace(tensor_, value).second) return Fail("", "weight_map names it twice");
    if (static_cast<std::int64_t>(index_.file_of.size()) > kIndexTensorsMax) {
      return Fail("", absl::StrFormat("more than %d tensors", kIndexTensorsMax));
    }
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && in_map_) {
      place_ = Place::kMap;
    } else if (place_ == Place::kMap) {
      return Other("{...}");
    } else {
      return Deeper();
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kSkip) return Shallower();
    if (place_ == Place::kMap) tensor_.clear();
    place_ = place_ == Place::kMap ? Place::kTop : Place::kEnd;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (place_ == Place::kSkip || (place_ == Place::kTop && !in_map_)) return Deeper();
    return Other("[...]");
  }
  bool end_array() override { return Shallower(); }

  bool key(string_t& value) override {
    if (place_ == Place::kTop) {
      in_map_ = value == "weight_map";
      if (in_map_ && saw_map_) return Fail("weight_map", "it stands there twice");
      saw_map_ = saw_map_ || in_map_;
    }
    if (place_ != Place::kMap) return true;
    tensor_ = value;
    if (value.empty() || static_cast<std::int64_t>(value.size()) > kTensorNameBytesMax) {
      return Fail(absl::StrFormat("a name of %d bytes", value.size()),
                  absl::StrFormat("expected 1 to %d", kTensorNameBytesMax));
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    tensor_.clear();
    return Fail(absl::StrFormat("byte %d", position), "the index is not valid JSON from here");
  }

 private:
  enum class Place : std::int8_t { kStart, kTop, kMap, kSkip, kEnd };

  bool Fail(std::string value, std::string fix) {
    if (!error_.has_value()) {
      error_ = CheckpointError{reason::kCheckpointInvalid, "", tensor_, std::move(value), std::move(fix)};
    }
    return false;
  }
  // Anything but the name of a file.
  bool Other(std::string value) {
    if (place_ == Place::kSkip || (place_ == Place::kTop && !in_map_)) return true;
    if (place_ == Place::kMap) return Fail(std::move(value), "expected the name of a file");
    return Fail(std::move(value), "expected an object with weight_map, an object of file names");
  }
  bool Deeper() {
    place_ = Place::kSkip;
    ++skipped_depth_;
    return true;
  }
  bool Shallower() {
    if (--skipped_depth_ == 0) place_ = Place::kTop;
    return true;
  }

  SafetensorsIndex index_;
  std::optional<CheckpointError> error_;
  Place place_ = Place::kStart;
  bool in_map_ = false;
  bool saw_map_ = false;
  std::int64_t skipped_depth_ = 0;
  std::string tensor_;
};

}  // namespace

absl::StatusOr<SafetensorsIndex> ReadSafetensorsIndex(std::string_view text, std::string_view file) {
  const auto invalid = [file](std::string value, std::string fix) {
    return ToStatus({reason::kCheckpointInvalid, std::string(file), "", std::move(value), std::move(fix)});
  };
  if (static_cast<std::int64_t>(text.size()) > kIndexBytesMax) {
    return invalid(absl::StrFormat("%d bytes", text.size()),
                   absl::StrFormat("at most %d are read", kIndexBytesMax));
  }
  if (text.find('\0') != std::string_view::npos) {  // where the JSON reader would stop
    return invalid("a NUL byte", "the index is not valid JSON");
  }
  IndexEvents events;
  if (!nlohmann::json::sax_parse(text, &events)) {
    CheckpointError error = events.error().value_or(
        CheckpointError{.reason = reason::kCheckpointInvalid, .fix = "the index is not valid JSON"});
    error.file = file;
    return ToStatus(error);
  }
  if (!events.saw_map()) return invalid("", "weight_map is missing");
  if (events.index().file_of.empty()) return invalid("weight_map", "it names no tensor");
  return std::move(events.index());
}

}  // namespace kvasir
