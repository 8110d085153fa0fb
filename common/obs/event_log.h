// One line per event, for programs first: `event=plan_prepared epoch=12 worker=node-a:7451`. No prompts, no
// tokens. Values that hold anything but letters, digits and -._:/+@ are quoted, with \" \\ \n \t \xNN inside,
// so that a value cannot forge a field or a line.
#ifndef KVASIR_COMMON_OBS_EVENT_LOG_H_
#define KVASIR_COMMON_OBS_EVENT_LOG_H_

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kvasir {

struct LogField {
  std::string_view key;
  std::string value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <std::integral Integer>
  LogField(std::string_view k, Integer v) : key(k), value(std::to_string(v)) {}
};

enum class LogLevel { kInfo, kWarning, kError };

[[nodiscard]] std::string FormatEvent(std::string_view event, std::initializer_list<LogField> fields);

void LogEvent(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

// Sends the log to stderr; call once, first in main. `argv0` names the program in the log.
void StartLogging(const char* argv0);

}  // namespace kvasir

#endif  // KVASIR_COMMON_OBS_EVENT_LOG_H_
