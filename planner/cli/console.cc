#include "planner/cli/console.h"

namespace kvasir::cli {
namespace {

std::string_view Code(Ink ink) {
  switch (ink) {
    case Ink::kGood:
      return "\x1b[1;32m";
    case Ink::kBad:
      return "\x1b[1;31m";
    case Ink::kDim:
      return "\x1b[2m";
    case Ink::kBold:
      return "\x1b[1m";
  }
  return "";
}

}  // namespace

Console Complaining(const Console& console) {
  return {
      .out = console.err, .err = console.err, .variable = console.variable, .run_remote = console.run_remote};
}

std::string Inked(const Console& console, Ink ink, std::string_view text) {
  if (!console.colour) return std::string(text);
  return std::string(Code(ink)) + std::string(text) + "\x1b[0m";
}

}  // namespace kvasir::cli
