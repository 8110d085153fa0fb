# shellcheck shell=bash
# Which sources changed, and which translation units show clang-tidy their code.

# Prints the commit that a change is measured from: where it left origin/main, else 20 commits back, else the first.
change_base() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z "$base" || "$base" == "$(git rev-parse HEAD)" ]]; then
    base=$(git rev-parse --verify --quiet HEAD~20 || git rev-list --max-parents=0 HEAD | tail -1)
  fi
  printf '%s\n' "$base"
}

# Prints changed sources that exist: of the work tree first, then of commits, the latest first.
changed_sources() {
  {
    git diff --name-only HEAD -- '*.h' '*.cc'
    git ls-files -o --exclude-standard -- '*.h' '*.cc'
    git log --name-only --format= "$(change_base)..HEAD" -- '*.h' '*.cc'
  } | awk '!seen[$0]++' | while read -r file; do
    if [[ -f "$file" ]]; then printf '%s\n' "$file"; fi
  done
}

# translation_units BUILD FILE ...: each .cc that BUILD compiles; for a header its own .cc, else one that includes it.
translation_units() {
  local build=$1 file unit
  shift
  for file in "$@"; do
    unit=$file
    if [[ "$file" == *.h ]]; then
      unit=${file%.h}.cc
      [[ -f "$unit" ]] || unit=$(git grep -lF "#include \"$file\"" -- '*.cc' | head -1 || true)
    fi
    if [[ -n "$unit" ]] && grep -qF "\"file\": \"$PWD/$unit\"" "$build/compile_commands.json"; then
      printf '%s\n' "$unit"
    fi
  done | awk '!seen[$0]++'
}
