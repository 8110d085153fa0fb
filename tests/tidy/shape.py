"""The shape of files: length, guards, whitespace, and that nothing lies around unused."""

import os
import re

from repo import CPP, TEXT, Finding

LIMITS = (  # the first prefix and suffix that match a path decide
    ('tests/', CPP, 800),
    ('', CPP, 500),
    ('tests/', ('.py',), 500),
    ('proto/', ('.proto',), 800),
    ('tools/shell/', ('.sh',), 120),
    ('tools/', ('.py',), 250),
    ('tools/', ('',), 60),
)
NO_LIMIT = ('tests/golden/', 'docs/', 'tests/fuzz/corpus/')


def check_length(repo):
    for path in repo.files:
        if path.startswith(NO_LIMIT):
            continue
        for prefix, suffixes, limit in LIMITS:
            if path.startswith(prefix) and path.endswith(suffixes):
                count = len(repo.lines(path))
                if count > limit:
                    yield Finding(path, count, 'length', f'{count} lines, at most {limit}; split it by what it does')
                break


def guard_of(path):
    return 'KVASIR_' + re.sub(r'[^A-Za-z0-9]', '_', path).upper() + '_'


def check_guards(repo):
    for path in repo.files:
        if not path.endswith(('.h', '.cuh')):
            continue
        guard = guard_of(path)
        text = repo.text(path)
        if not re.search(rf'^#ifndef {guard}\n#define {guard}$', text, re.MULTILINE):
            yield Finding(path, 1, 'guards', f'expected the include guard {guard}')
        elif not text.rstrip().endswith(f'#endif  // {guard}'):
            yield Finding(path, len(repo.lines(path)), 'guards', f'expected to end with "#endif  // {guard}"')


def check_listed(repo):
    """Each source stands in the CMakeLists.txt of its folder, or of the nearest folder above that has one.

    A header of tests need not, if a test includes it.
    """
    tests = '\n'.join(repo.text(p) for p in repo.cpp('tests/'))
    elsewhere = '\n'.join(repo.text(p) for p in repo.files if p.endswith(('CMakeLists.txt', '.cmake')))
    for path in repo.cpp('common/', 'planner/', 'worker/', 'tests/'):
        if path.startswith('tests/') and path.endswith('.h') and f'#include "{path}"' in tests:
            continue
        if '${CMAKE_SOURCE_DIR}/' + path in elsewhere:
            continue
        folder = os.path.dirname(path)
        while folder and not repo.exists(f'{folder}/CMakeLists.txt'):
            folder = os.path.dirname(folder)
        name = os.path.relpath(path, folder or '.')
        listing = f'{folder}/CMakeLists.txt' if folder else 'CMakeLists.txt'
        if not repo.exists(listing) or not re.search(rf'(?<![\w./]){re.escape(name)}(?![\w.])', repo.text(listing)):
            yield Finding(path, 1, 'listed', f'{name} does not stand in {listing}')


def check_golden(repo):
    """Each golden file is named by a test: its path, or the folder that the test reads as a whole."""
    tests = '\n'.join(repo.text(p) for p in repo.cpp('tests/'))
    for path in repo.files:
        if not path.startswith('tests/golden/'):
            continue
        name = path[len('tests/golden/'):]
        folder = os.path.dirname(name)
        if f'"{name}"' not in tests and (not folder or f'"{folder}/"' not in tests):
            yield Finding(path, 1, 'golden', f'no test names "{name}" or "{folder}/"')


def check_whitespace(repo):
    for path in repo.files:
        if not path.endswith(TEXT) or path.startswith(('tests/golden/', 'tests/fuzz/corpus/')):
            continue
        text = repo.text(path)
        if text and not text.endswith('\n'):
            yield Finding(path, len(repo.lines(path)), 'whitespace', 'no newline at the end')
        for number, line in enumerate(text.split('\n'), 1):
            if line != line.rstrip() or '\r' in line:
                yield Finding(path, number, 'whitespace', 'whitespace at the end of the line')


def check_tools(repo):
    """Each habit can be run, has help, and stands in CONTRIBUTING.md."""
    guide = repo.text('CONTRIBUTING.md') if repo.exists('CONTRIBUTING.md') else ''
    for path in repo.files:
        if os.path.dirname(path) != 'tools':
            continue
        if not os.access(os.path.join(repo.root, path), os.X_OK):
            yield Finding(path, 1, 'tools', 'not executable')
        if 'source "$(dirname "$0")/shell/habit.sh"' not in repo.text(path):
            yield Finding(path, 1, 'tools', 'does not source shell/habit.sh, which gives --help and prints commands')
        if f'`{path}' not in guide:
            yield Finding(path, 1, 'tools', f'CONTRIBUTING.md does not show `{path}`')
