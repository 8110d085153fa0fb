// The JSON of a safetensors header as a stream of events: nothing nests deeper than the format does, and
// memory grows with the tensors alone.
#ifndef KVASIR_COMMON_CHECKPOINT_HEADER_EVENTS_H_
#define KVASIR_COMMON_CHECKPOINT_HEADER_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/safetensors_header.h"

namespace kvasir {

// Offsets of the entries are those of the text: from the start of the data.
class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  [[nodiscard]] SafetensorsHeader& header() { return header_; }
  // Why the text was left; `file` is empty. Set where parsing returned false.
  [[nodiscard]] const std::optional<CheckpointError>& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool value) override { return Unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t elements) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(std::size_t elements) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override;

 private:
  enum class Place : std::int8_t { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };
  enum class Field : std::int8_t { kNone, kDtype, kShape, kOffsets };

  bool Fail(std::string value, std::string fix);
  // A value of a kind that may not stand here.
  bool Unexpected(std::string value);
  bool StartTensor(const std::string& name);
  bool StartField(const std::string& name);

  SafetensorsHeader header_;
  std::optional<CheckpointError> error_;
  Place place_ = Place::kStart;
  Field field_ = Field::kNone;
  TensorEntry tensor_;
  std::string key_;  // of the metadata
  bool saw_metadata_ = false;
  bool in_metadata_ = false;
  bool saw_dtype_ = false;
  bool saw_shape_ = false;
  bool saw_offsets_ = false;
  std::int64_t offsets_ = 0;  // read of the two
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_HEADER_EVENTS_H_
