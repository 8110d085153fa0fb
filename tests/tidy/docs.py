"""Documents: one title each, links and named files that exist, decision records of one form."""

import os
import re

from repo import Finding

LIVING = ('README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md')  # name files as they are today; records name the past
SECTIONS = ('Status', 'Context', 'Decision', 'Alternatives', 'Consequences')
RECORD_LINES = 60

_LINK = re.compile(r'(?<!!)\[[^\]]*\]\(([^)\s]+)\)')
_PATH = re.compile(r'`((?:common|planner|worker|proto|tests|tools|deploy|docs|\.ci)/[\w./{},*-]*)')


def prose(repo, path):
    """(line number, text) outside fenced blocks."""
    fenced = False
    for number, line in enumerate(repo.lines(path), 1):
        if line.lstrip().startswith('```'):
            fenced = not fenced
        elif not fenced:
            yield number, line


def slug(heading):
    return re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-')


def anchors(repo, path):
    return {slug(line.lstrip('#')) for _, line in prose(repo, path) if line.startswith('#')}


def check_titles(repo):
    for path in repo.markdown():
        titles = [number for number, line in prose(repo, path) if line.startswith('# ')]
        if len(titles) != 1:
            yield Finding(path, (titles + [1])[-1], 'titles', f'{len(titles)} titles ("# ..."), expected one')


def check_links(repo):
    for path in repo.markdown():
        for number, line in prose(repo, path):
            for target in _LINK.findall(line):
                if re.match(r'[a-z]+:', target):
                    continue
                file, _, anchor = target.partition('#')
                full = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                if not repo.exists(full):
                    yield Finding(path, number, 'links', f'{target} does not exist')
                elif anchor and full.endswith('.md') and anchor not in anchors(repo, full):
                    yield Finding(path, number, 'links', f'{full} has no heading for #{anchor}')


def _expand(path):
    match = re.search(r'\{([^}]*)\}', path)
    if not match:
        return [path]
    return [e for part in match.group(1).split(',') for e in _expand(path[:match.start()] + part + path[match.end():])]


def check_paths(repo):
    """A file or folder named in a living document exists."""
    for path in LIVING:
        if not repo.exists(path):
            continue
        for number, line in prose(repo, path):
            for named in _PATH.findall(line):
                for one in _expand(named.rstrip('.,')):
                    if '*' not in one and not repo.exists(one):
                        yield Finding(path, number, 'paths', f'{one} does not exist')


def check_records(repo):
    numbers = []
    for path in repo.markdown():
        match = re.match(r'docs/adr/(\d{4})-[a-z0-9-]+\.md$', path)
        if not match:
            if path.startswith('docs/adr/'):
                yield Finding(path, 1, 'records', 'expected a name like 0001-some-words.md')
            continue
        numbers.append(int(match.group(1)))
        headings = tuple(line[3:] for _, line in prose(repo, path) if line.startswith('## '))
        if headings != SECTIONS:
            yield Finding(path, 1, 'records', f'expected the sections {", ".join(SECTIONS)}')
        if len(repo.lines(path)) > RECORD_LINES:
            yield Finding(path, RECORD_LINES, 'records', f'longer than a page ({RECORD_LINES} lines)')
    if numbers != list(range(1, len(numbers) + 1)):
        yield Finding('docs/adr', 1, 'records', f'numbers are not 0001 .. {len(numbers):04}')
