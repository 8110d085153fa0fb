#!/usr/bin/env python3
"""clang-tidy on one translation unit, unless the same text passed before.

  tidy_unit.py BUILD FILE

The key of a pass is everything that clang-tidy sees: its version, .clang-tidy, the unit's flags, its own text and
its preprocessed text with comments (a NOLINT counts). A pass leaves an empty file of that name in the user's cache;
findings are never remembered. Preprocessing costs a tenth of the checks.
"""
import hashlib
import json
import os
import shlex
import subprocess
import sys

TIDY, CLANG = "clang-tidy-19", "clang++-19"


def flags_of(build, path):
    """The compile command without the compiler, the output and the input; and where it runs."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as commands:
        entry = next(e for e in json.load(commands) if os.path.realpath(e["file"]) == os.path.realpath(path))
    words = shlex.split(entry["command"])
    output = words.index("-o")
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")):output] + words[output + 2:]
    return [word for word in words if word not in ("-c", entry["file"])], entry["directory"]


def key_of(build, path):
    """None where the unit cannot be preprocessed: then clang-tidy says what is wrong with it."""
    flags, directory = flags_of(build, path)
    seen = subprocess.run([CLANG, "-w", *flags, "-E", "-CC", "-dD", path], cwd=directory, capture_output=True, check=False)
    if seen.returncode != 0:
        return None
    parts = [subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout, " ".join(flags).encode()]
    folders = os.path.relpath(path).split(os.sep)[:-1]
    rules = [os.path.join(*folders[:depth], ".clang-tidy") for depth in range(len(folders) + 1)]
    for name in filter(os.path.exists, [*rules, path]):
        with open(name, "rb") as text:
            parts.append(text.read())
    return hashlib.sha256(b"\0".join([*parts, seen.stdout]).replace(os.getcwd().encode(), b".")).hexdigest()


def main():
    build, path = sys.argv[1], os.path.abspath(sys.argv[2])
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "kvasir", "tidy")
    key = key_of(build, path)
    passed = os.path.join(cache, key) if key else None
    if passed and os.path.exists(passed):
        return 0
    command = [TIDY, "--quiet", "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-gch", "-p", build, path]
    verdict = subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
    if verdict == 0 and passed and key == key_of(build, path):  # nobody changed it meanwhile
        os.makedirs(cache, exist_ok=True)
        with open(passed, "w", encoding="utf-8"):
            pass
    return verdict


if __name__ == "__main__":
    sys.exit(main())
