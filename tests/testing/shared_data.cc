#include "tests/testing/shared_data.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace kvasir::testing {

std::optional<std::string> SharedDataDir() {
  const char* dir = std::getenv("KVASIR_SHARED_DATA");
  if (dir == nullptr || *dir == '\0') return std::nullopt;
  return std::string(dir);
}

std::optional<std::string> ReadFile(std::string_view path) {
  std::ifstream file{std::string(path), std::ios::binary};
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace kvasir::testing
