# shellcheck shell=bash
# Servers of one run: started on free ports, stopped when the run ends; their logs stay if it fails.

home=$(mktemp -d)
export XDG_STATE_HOME=$home
pids=()
finish() {
  local status=$?
  ((${#pids[@]} == 0)) || { kill "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null; } || true
  if ((status == 0)); then rm -rf "$home"; else say "failed; the logs are in $home"; fi
  exit "$status"
}
trap finish EXIT

# serve NAME COMMAND ...: starts a server and sets `address` once it says where it listens.
serve() {
  local name=$1
  shift
  printf '+ %s &\n' "$*" >&2
  "$@" >"$home/$name.log" 2>&1 &
  pids+=($!)
  for _ in {1..100}; do
    address=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$home/$name.log" | head -1)
    [[ -z "$address" ]] || return 0
    kill -0 "${pids[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  cat "$home/$name.log" >&2
  die "$name did not start"
}

# decode_both PLAN JUDGE_FLAG ... -- DECODE_WORD ...: with the draft and without it, and what that shows.
decode_both() {
  local plan=$1 judge=()
  shift
  while [[ "$1" != -- ]]; do judge+=("$1") && shift; done
  shift
  local decode=(kvasir decode --server "$planner" --deployment demo --output json "$@")
  run "${decode[@]}" >"$home/with.json"
  run "${decode[@]}" --no-speculate >"$home/without.json"
  python3 tools/shell/compare_runs.py "$plan" "$home/with.json" "$home/without.json" "${judge[@]}"
}
