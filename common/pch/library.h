// Precompiled for every file of a library or program (option KVASIR_PCH): what most of them include. No file
// relies on it: presets debug and clang build without.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
