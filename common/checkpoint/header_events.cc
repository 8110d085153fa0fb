#include "common/checkpoint/header_events.h"

#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/error_reasons.h"

namespace kvasir {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";

std::string TypeNames() {
  return absl::StrJoin(kStoredTypes, ", ",
                       [](std::string* out, const StoredTypeRow& row) { out->append(row.name); });
}

}  // namespace

bool HeaderEvents::Fail(std::string value, std::string fix) {
  if (!error_.has_value()) {
    error_ = CheckpointError{reason::kCheckpointInvalid, "", tensor_.name, std::move(value), std::move(fix)};
  }
  return false;
}

bool HeaderEvents::Unexpected(std::string value) {
  switch (place_) {
    case Place::kStart:
    case Place::kEnd:
      return Fail(std::move(value), "expected one JSON object, the header");
    case Place::kTop:
      return Fail(std::move(value), in_metadata_
                                        ? "__metadata__ is an object of strings"
                                        : "a tensor is an object with dtype, shape and data_offsets");
    case Place::kMetadata:
      return Fail(std::move(value), absl::StrFormat("__metadata__ holds strings only, at \"%s\"", key_));
    case Place::kTensor:
      if (field_ == Field::kDtype) return Fail("dtype " + value, "expected a string");
      return Fail((field_ == Field::kShape ? "shape " : "data_offsets ") + value,
                  "expected a list of integers");
    case Place::kShape:
      return Fail("shape entry " + value, "expected an integer of at least 0, below 2^63");
    case Place::kOffsets:
      return Fail("data_offsets entry " + value, "expected an integer of at least 0, below 2^63");
  }
  return false;
}

bool HeaderEvents::number_integer(number_integer_t value) { return Unexpected(std::to_string(value)); }

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
    return Unexpected(std::to_string(value));
  }
  const auto number = static_cast<std::int64_t>(value);
  if (place_ == Place::kShape) {
    tensor_.shape.push_back(number);
    if (static_cast<std::int64_t>(tensor_.shape.size()) > kTensorRankMax) {
      return Fail("shape", absl::StrFormat("more than %d dimensions", kTensorRankMax));
    }
    return true;
  }
  if (place_ == Place::kOffsets) {
    if (offsets_ == 2) return Fail("data_offsets", "expected two entries, begin and end; there are more");
    (offsets_ == 0 ? tensor_.begin : tensor_.end) = number;
    ++offsets_;
    return true;
  }
  return Unexpected(std::to_string(value));
}

bool HeaderEvents::number_float(number_float_t /*value*/, const string_t& text) { return Unexpected(text); }

bool HeaderEvents::string(string_t& value) {
  if (place_ == Place::kMetadata) {
    if (!header_.metadata.emplace(key_, value).second) {
      return Fail(key_, "__metadata__ names this key twice");
    }
    if (static_cast<std::int64_t>(header_.metadata.size()) > kMetadataPairsMax) {
      return Fail("__metadata__", absl::StrFormat("more than %d pairs", kMetadataPairsMax));
    }
    return true;
  }
  if (place_ != Place::kTensor || field_ != Field::kDtype) return Unexpected("\"" + value + "\"");
  const std::optional<StoredType> type = ParseStoredType(value);
  if (!type.has_value()) return Fail("dtype \"" + value + "\"", "expected one of " + TypeNames());
  tensor_.type = *type;
  return true;
}

bool HeaderEvents::binary(binary_t& /*value*/) { return Unexpected("binary data"); }

bool HeaderEvents::start_object(std::size_t /*elements*/) {
  if (place_ == Place::kStart) {
    place_ = Place::kTop;
    return true;
  }
  if (place_ != Place::kTop) return Unexpected("{...}");
  place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
  return true;
}

bool HeaderEvents::StartTensor(const std::string& name) {
  tensor_ = TensorEntry{.name = name};
  field_ = Field::kNone;
  saw_dtype_ = saw_shape_ = saw_offsets_ = false;
  offsets_ = 0;
  if (name.empty()) return Fail("\"\"", "a tensor has no name");
  if (static_cast<std::int64_t>(name.size()) > kTensorNameBytesMax) {
    return Fail(absl::StrFormat("a name of %d bytes", name.size()),
                absl::StrFormat("at most %d are read", kTensorNameBytesMax));
  }
  if (static_cast<std::int64_t>(header_.tensors.size()) == kFileTensorsMax) {
    return Fail("", absl::StrFormat("more than %d tensors in one file", kFileTensorsMax));
  }
  return true;
}

bool HeaderEvents::StartField(const std::string& name) {
  bool* saw = nullptr;
  if (name == "dtype") {
    saw = &saw_dtype_;
    field_ = Field::kDtype;
  } else if (name == "shape") {
    saw = &saw_shape_;
    field_ = Field::kShape;
  } else if (name == "data_offsets") {
    saw = &saw_offsets_;
    field_ = Field::kOffsets;
  } else {
    return Fail("field \"" + name + "\"", "a tensor has dtype, shape and data_offsets only");
  }
  if (*saw) return Fail("field \"" + name + "\"", "it stands there twice");
  *saw = true;
  return true;
}

bool HeaderEvents::key(string_t& value) {
  if (place_ == Place::kMetadata) {
    key_ = value;
    return true;
  }
  if (place_ == Place::kTensor) return StartField(value);
  in_metadata_ = value == kMetadataName;
  if (!in_metadata_) return StartTensor(value);
  tensor_.name.clear();
  if (saw_metadata_) return Fail(std::string(kMetadataName), "it stands there twice");
  saw_metadata_ = true;
  return true;
}

bool HeaderEvents::end_object() {
  if (place_ == Place::kTop) {
    place_ = Place::kEnd;
    return true;
  }
  if (place_ == Place::kTensor) {
    if (!saw_dtype_) return Fail("", "its dtype is missing");
    if (!saw_shape_) return Fail("", "its shape is missing");
    if (!saw_offsets_) return Fail("", "its data_offsets are missing");
    header_.tensors.push_back(std::move(tensor_));
    tensor_ = {};
  }
  place_ = Place::kTop;
  return true;
}

bool HeaderEvents::start_array(std::size_t /*elements*/) {
  if (place_ == Place::kTensor && field_ == Field::kShape) {
    place_ = Place::kShape;
  } else if (place_ == Place::kTensor && field_ == Field::kOffsets) {
    place_ = Place::kOffsets;
  } else {
    return Unexpected("[...]");
  }
  return true;
}

bool HeaderEvents::end_array() {
  if (place_ == Place::kOffsets && offsets_ != 2) {
    return Fail(absl::StrFormat("data_offsets of %d entries", offsets_), "expected two, begin and end");
  }
  place_ = Place::kTensor;
  return true;
}

bool HeaderEvents::parse_error(std::size_t position, const std::string& /*token*/,
                               const nlohmann::json::exception& /*error*/) {
  tensor_.name.clear();
  return Fail(absl::StrFormat("byte %d of the header", position), "the header is not valid JSON from here");
}

}  // namespace kvasir
