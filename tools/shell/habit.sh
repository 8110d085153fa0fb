# shellcheck shell=bash
# Sourced by every tool: strict mode, the repository's root, --help from the tool's own header, and `run`.
set -euo pipefail

habit_file=$(realpath "$0")
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../.."
# shellcheck disable=SC2034  # read by the tools
jobs=$(nproc)

# Prints a command, then runs it.
run() {
  printf '+ %s\n' "$*" >&2
  "$@"
}

say() { printf '%s: %s\n' "$(basename "$habit_file")" "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# The comment at the top of the tool is its help.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$habit_file"; }

if [[ "${1:-}" == --help || "${1:-}" == -h ]]; then
  usage
  exit 0
fi
