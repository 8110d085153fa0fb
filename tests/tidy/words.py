"""Words that do not belong: calls that hide effects, names that say nothing, marks of unfinished work."""

import os
import re

from repo import CPP, TEXT, Finding, code_only

# (pattern, why), for the code of every C++ file.
EVERYWHERE = (
    (r'(?<!_)\bassert\s*\(', 'assert is compiled out in production; use KVASIR_CHECK or return a Status'),
    (r'\babsl::Mutex\b', 'ThreadSanitizer cannot see into it; use std::mutex'),
    (r'\busing\s+namespace\b', 'name what you use'),
    (r'\b\w*(?:Utils?|Helpers?|Manager)\b', 'the name says nothing; name what it does'),
    (r'\bnamespace\s+(?:utils?|helpers?|misc)\b', 'the name says nothing; name what it does'),
)

# For the code of the deterministic folders.
DETERMINISTIC = ('planner/core/', 'planner/rulesets/', 'common/plan/')
PEER_ARITHMETIC = 'planner/rulesets/vllm/'  # where the engine that is predicted divides doubles
NOT_DETERMINISTIC = (
    (r'\bstd::unordered_\w+|\b(?:flat|node)_hash_(?:map|set)\b', 'its order differs from run to run'),
    (r'\b(?:getenv|rand|srand|time|clock|setlocale)\s*\(', 'a plan depends on its request only'),
    (r'\bstatic\s+(?!constexpr|const\b|_|void|std::\w+\s+\w+\()[\w:<>]+\s+\w+\s*(?:=|;|\{)', 'no mutable statics'),
)
FLOATS = (r'\b(?:float|double)\b', 'integers only; a ratio is a pair of integers')

_NAMES = re.compile(r'(?:^|[_\-.])(?:utils?|helpers?|managers?|misc)(?:[_\-.]|$)')
_MARKS = re.compile(r'\b(?:TO' r'DO|FIX' r'ME|XX' r'X)\b')


def _search(repo, path, patterns):
    code = code_only(repo.text(path))
    for pattern, reason in patterns:
        for match in re.finditer(pattern, code):
            yield Finding(path, code.count('\n', 0, match.start()) + 1, 'words', f'{match.group(0).strip()}: {reason}')


def check_words(repo):
    for path in repo.cpp('common/', 'planner/', 'worker/', 'tests/'):
        yield from _search(repo, path, EVERYWHERE)
        if path.startswith(DETERMINISTIC):
            yield from _search(repo, path, NOT_DETERMINISTIC)
            if not path.startswith(PEER_ARITHMETIC):
                yield from _search(repo, path, (FLOATS,))


def check_names(repo):
    for path in repo.files:
        for part in path.split('/'):
            if _NAMES.search(part):
                yield Finding(path, 1, 'names', f'"{part}" says nothing; name what it does')


def check_marks(repo):
    for path in repo.files:
        if not path.endswith(TEXT + CPP) and os.path.dirname(path) not in ('tools', '.ci'):
            continue
        for number, line in enumerate(repo.lines(path), 1):
            match = _MARKS.search(line)
            if match:
                yield Finding(path, number, 'marks', f'{match.group(0)}: finish it or file an issue')
