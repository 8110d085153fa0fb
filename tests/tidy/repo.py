"""The files under a root, as the checks see them, and what a finding looks like."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from functools import cached_property

CPP = ('.h', '.cc', '.cu', '.cuh')
TEXT = CPP + ('.md', '.txt', '.cmake', '.py', '.sh', '.proto', '.yaml', '.json')
SKIPPED = {'.git', '.venv', 'build', '__pycache__', '.cache', '.demo'}


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    check: str
    message: str

    def __str__(self):
        return f'{self.path}:{self.line}: [{self.check}] {self.message}'


@dataclass
class Repo:
    root: str
    _texts: dict = field(default_factory=dict)

    @cached_property
    def files(self):
        """Paths from the root, sorted: what git tracks or would track; without git, all files."""
        if os.path.exists(os.path.join(self.root, '.git')):
            listed = subprocess.run(['git', '-C', self.root, 'ls-files', '-z', '-co', '--exclude-standard'],
                                    check=True, capture_output=True, text=True).stdout.split('\0')
            return sorted(p for p in listed if p and os.path.isfile(os.path.join(self.root, p)))
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [f for f in folders if f not in SKIPPED]
            found += [os.path.relpath(os.path.join(folder, n), self.root) for n in names]
        return sorted(found)

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), encoding='utf-8', errors='replace') as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def lines(self, path):
        return self.text(path).splitlines()

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))

    def cpp(self, *prefixes):
        return [p for p in self.files if p.endswith(CPP) and (not prefixes or p.startswith(prefixes))]

    def markdown(self):
        return [p for p in self.files if p.endswith('.md')]


_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def code_only(text):
    """C++ without comments, and with literals emptied; lines keep their numbers."""

    def blank(match):
        kept = '\n' * match.group(0).count('\n')
        return kept if match.group(0).startswith('/') else '""' + kept

    return _TOKENS.sub(blank, text)
