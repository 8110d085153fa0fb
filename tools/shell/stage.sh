# shellcheck shell=bash disable=SC2034  # tools/ci reads what is set here
# The stages of the full check: each runs into its log, and is not run again for a tree that it passed for.

report=docs/generated/ci_full.md logs=build/ci_full
mkdir -p "$logs"
# What is tested: the tree, if nothing lies beside it, and the data that tests read.
tested() {
  local changed
  changed=$(git status --porcelain | grep -v " $report\$" || true)
  if [[ -n "$changed" ]]; then printf 'changed-%s\n' "$(date +%s%N)"; return; fi
  printf '%s %s\n' "$(git rev-parse 'HEAD^{tree}')" "${KVASIR_SHARED_DATA:-without shared data}"
}
failed=0 rows=''

# stage NAME PATTERN COMMAND ...: runs it into a log; its row shows the last line of the log that matches PATTERN.
# The rows of passed stages are kept with the tree that they passed for.
stage() {
  local name=$1 pattern=$2 log="$logs/${1// /_}.log" start=$SECONDS verdict=ok row
  shift 2
  local tree
  tree=$(tested)
  if [[ "$(head -1 "$log.passed" 2>/dev/null)" == "$tree" ]]; then
    rows+=$(tail -1 "$log.passed")$'\n'
    return
  fi
  run "$@" >"$log" 2>&1 || { verdict=FAILED; failed=1; say "$name failed; see $log"; }
  row="| $name | $verdict | $(grep -E "$pattern" "$log" | tail -1 || true) | $((SECONDS - start)) s |"
  rows+=$row$'\n'
  # Not where somebody changed it meanwhile.
  [[ $verdict == FAILED || "$(tested)" != "$tree" ]] || printf '%s\n%s\n' "$tree" "$row" >"$log.passed"
}
