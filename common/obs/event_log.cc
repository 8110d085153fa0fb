#include "common/obs/event_log.h"

#include <glog/logging.h>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._:/+@").find(c) != std::string_view::npos;
}

std::string Quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    switch (c) {
      case '"':
        text += "\\\"";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\t':
        text += "\\t";
        break;
      default:
        if (c >= ' ' && c <= '~') {
          text += c;
        } else {
          text += absl::StrFormat("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
    }
  }
  return text + "\"";
}

std::string Value(std::string_view value) {
  for (const char c : value) {
    if (!IsPlain(c)) {
      return Quoted(value);
    }
  }
  return value.empty() ? "\"\"" : std::string(value);
}

}  // namespace

std::string FormatEvent(std::string_view event, std::initializer_list<LogField> fields) {
  std::string line = absl::StrFormat("event=%s", Value(event));
  for (const LogField& field : fields) {
    line += absl::StrFormat(" %s=%s", field.key, Value(field.value));
  }
  return line;
}

void LogEvent(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const std::string line = FormatEvent(event, fields);
  switch (level) {
    case LogLevel::kInfo:
      LOG(INFO) << line;
      return;
    case LogLevel::kWarning:
      LOG(WARNING) << line;
      return;
    case LogLevel::kError:
      LOG(ERROR) << line;
      return;
  }
}

void StartLogging(const char* argv0) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv0);
}

}  // namespace kvasir
