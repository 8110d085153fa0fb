# shellcheck shell=bash disable=SC2034,SC2154  # tools/ci reads what is set here, and sets what is read
# The stages of the full check, and the report that remembers of each when it last ran, on which commit, and what came of
# it. The whole check takes longer than many sittings: rows of other runs stay until their stage runs again.

report=docs/generated/ci_full.md logs=build/ci_full
names=()
declare -A patterns commands

# What is tested: everything committed but the report.
content() { git ls-tree -r HEAD | grep -v "	$report\$" | sha256sum | cut -c1-12; }

# stage NAME PATTERN FUNCTION: its row will show the last line of its log that matches PATTERN.
stage() {
  names+=("$1")
  patterns["$1"]=$2
  commands["$1"]=$3
}

row_of() { grep -F "| $1 | " "$report" 2>/dev/null || true; }
field_of() { row_of "$1" | awk -F ' [|] ' -v place="$2" '{ gsub(/^[|] | [|]$/, ""); print $place }'; }
# It passed for what would be tested now.
is_current() { [[ "$(field_of "$1" 2)" == ok && "$(field_of "$1" 7)" == "$(content)" ]]; }

# Those that never ran come first, then the oldest.
in_turn() {
  local name
  for name in "${names[@]}"; do printf '%s\t%s\n' "$(field_of "$name" 6)" "$name"; done | sort -s -t $'\t' -k 1,1 | cut -f2
}

# write_report NAME ROW: the row in place of the stage's own; all others as they are.
write_report() {
  local name rows=''
  for name in "${names[@]}"; do
    if [[ "$name" == "$1" ]]; then rows+=$2$'\n'; else rows+=$(row_of "$name")$'\n'; fi
  done
  {
    printf '# Full check\n\nWritten by `tools/ci --full`: of each stage the run that was last, by its end (UTC). `tested` is a digest of what\n'
    printf 'was committed then; where rows differ in it, the older ones are of an older commit.\n\n'
    printf '*   %s, %s cores\n*   %s; %s\n\n' "$(uname -srm)" "$jobs" "$(g++ --version | head -1)" \
      "$(clang++-19 --version | head -1)"
    printf '| stage | verdict | summary | seconds | commit | end | tested |\n| --- | --- | --- | --- | --- | --- | --- |\n'
    grep . <<<"$rows" || true
  } >"$report.new"
  mv "$report.new" "$report"
}

# run_stage NAME: into a log, then into the report. Nonzero where it failed.
run_stage() {
  local name=$1 log="$logs/${1// /_}.log" start=$SECONDS verdict=ok tested commit
  tested=$(content) commit=$(git rev-parse --short HEAD)
  run "${commands[$name]}" >"$log" 2>&1 || verdict=FAILED
  # Not where somebody changed it meanwhile.
  if [[ "$(content)" != "$tested" ]] || ! is_clean; then say "$name: the tree changed while it ran"; return 1; fi
  write_report "$name" "| $name | $verdict | $(grep -E "${patterns[$name]}" "$log" | tail -1 | tr '|' '/') | $((SECONDS - start)) | $commit | $(date -u +%FT%H:%MZ) | $tested |"
  say "$name: $verdict, $((SECONDS - start)) s"
  [[ $verdict == ok ]] || { say "see $log"; return 1; }
}

is_clean() { [[ -z "$(git status --porcelain -- . ":!$report")" ]]; }
