# shellcheck shell=bash disable=SC2154  # sourced by tools/ci, after habit.sh and stage.sh
# What the full check consists of.

tests() { tools/build "$1" && ctest --test-dir "build/$1" -j "$jobs" --output-on-failure --no-tests=error; }
tests_release() { tests release; }
tests_dev() { tests dev; }
tests_clang() { tests clang; }
tests_asan() { tests asan; }
tests_tsan() { tests tsan; }
build_cuda() { tools/build cuda kvasir-worker; }
# The same request must give the same id whatever built the planner.
plan_ids() {
  local preset
  for preset in release debug dev clang asan tsan; do tools/build "$preset" plan_id_probe; done >&2
  local probes=(build/{release,debug,dev,clang,asan,tsan}/bin/plan_id_probe) ids
  ids=$(for probe in "${probes[@]}"; do printf '%s %s\n' "$("$probe")" "$probe"; done)
  printf '%s\n' "$ids"
  [[ $(cut -d' ' -f1 <<<"$ids" | sort -u | wc -l) == 1 ]] || return 1
  printf '%s from %d builds\n' "$(cut -d' ' -f1 <<<"$ids" | head -1)" "${#probes[@]}"
}
long_simulation() {
  tools/build release explore_apply_test &&
    KVASIR_WALKS=100000 build/release/bin/explore_apply_test --gtest_filter='*LongWalks*'
}
whole_attention() {
  tools/build release published_conformance_test &&
    KVASIR_WHOLE_TABLES=1 build/release/bin/published_conformance_test
}
fuzz_sanitizers() { tools/fuzz 90; }
fuzz_many() { tools/fuzz many; }
demo() { tools/demo; }
lint_all() { tools/build release && tools/lint --all; }

stage "tests, release" 'tests passed' tests_release
stage "tests, asan" 'tests passed' tests_asan
stage "tests, clang" 'tests passed' tests_clang
stage "tests, tsan" 'tests passed' tests_tsan
# Of g++ without NDEBUG; debug, which takes half an hour longer, is in the plan ids.
stage "tests, dev" 'tests passed' tests_dev
stage "plan ids" 'from .* builds' plan_ids
stage "simulation, long" 'PASSED' long_simulation
stage "attention, whole table" 'PASSED' whole_attention
stage "fuzz, sanitizers" 'fuzz: ' fuzz_sanitizers
stage "fuzz, ten million" 'fuzz: ' fuzz_many
if command -v nvcc >/dev/null; then stage "build, cuda" 'Linking CXX executable' build_cuda; fi
stage "demo" 'demo: ' demo
stage "lint, all files" 'lint: ' lint_all
