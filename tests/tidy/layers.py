"""Who may include whom: the allow-list of ARCHITECTURE.md's dependency picture.

A file may include its own folder, the folders its rule names, and the libraries its rule names. A folder without a
rule is an error, so that a new one gets its place in the picture.
"""

import fnmatch
import re
from dataclasses import dataclass

from repo import Finding


@dataclass(frozen=True)
class Rule:
    allow: tuple = ()      # folders of ours
    libraries: tuple = ()  # names of LIBRARIES
    pure: bool = False     # no I/O, clock, threads, randomness, unordered containers


# Library name -> how an include of it starts.
LIBRARIES = {
    'status': ('absl/status/', 'absl/strings/'),
    'json': ('nlohmann/',),
    'yaml': ('yaml-cpp/',),
    'glog': ('glog/',),
    'grpc': ('grpc/', 'grpcpp/'),
    'protobuf': ('google/protobuf/',),
    'posix': ('sys/', 'netinet/', 'arpa/', 'netdb.h', 'unistd.h', 'fcntl.h', 'poll.h', 'signal.h', 'pthread.h',
              'ifaddrs.h', 'gnu/'),
    'cuda': ('cuda', 'nccl', 'cub/', 'cooperative_groups'),
}

IMPURE = {'atomic', 'barrier', 'chrono', 'condition_variable', 'cstdio', 'ctime', 'execution', 'filesystem', 'fstream',
          'future', 'iostream', 'latch', 'locale', 'mutex', 'random', 'semaphore', 'shared_mutex', 'stop_token',
          'thread', 'unordered_map', 'unordered_set'}

_BASE = ('common/base',)
_PLAN = _BASE + ('common/geometry', 'common/plan')
_PLANNING = _PLAN + ('common/models', 'planner/core', 'planner/rulesets', 'planner/request')
_ENGINE = _PLAN + ('common/models', 'worker/engine')
_WIRE = ('common/obs', 'common/rpc', 'proto')
_GRPC = ('status', 'grpc', 'protobuf', 'glog')
_EXECUTOR = Rule(_PLAN + ('planner/dispatch',) + _WIRE, _GRPC + ('posix',))

# The first pattern that matches a path decides.
RULES = (
    ('common/base/check.h', Rule()),  # prints before it aborts
    ('common/base/*', Rule((), ('status',), pure=True)),
    ('common/geometry/*', Rule(_BASE, ('status',), pure=True)),
    ('common/plan/*', Rule(_PLAN, ('status',), pure=True)),
    ('common/models/*', Rule(_BASE + ('common/geometry',), ('status', 'json'))),
    ('common/checkpoint/mapped_file.*', Rule(_BASE, ('status', 'posix'))),  # the only one that opens files
    ('common/checkpoint/*', Rule(_BASE + ('common/geometry', 'common/models'), ('status', 'json'), pure=True)),
    ('common/obs/*', Rule(_BASE, ('status', 'glog'))),
    ('common/rpc/*', Rule(_BASE + ('common/obs', 'proto'), _GRPC + ('posix',))),
    ('planner/core/*', Rule(_PLAN, ('status',), pure=True)),
    ('planner/rulesets/*', Rule(_PLAN + ('planner/core',), ('status',), pure=True)),
    ('planner/request/*_json.*', Rule(_PLANNING, ('status', 'json'))),
    ('planner/request/case_object.*', Rule(_PLANNING, ('status', 'json'))),
    ('planner/request/launch_*', Rule(_PLANNING, ('status', 'json', 'yaml'))),
    ('planner/request/*', Rule(_PLANNING, ('status',))),
    ('planner/questions/*', Rule(_PLANNING, ('status',))),
    ('planner/dispatch/dispatcher*', _EXECUTOR),
    ('planner/dispatch/*_caller.*', _EXECUTOR),
    ('planner/dispatch/*', Rule(_PLAN, ('status', 'posix'))),
    ('planner/wire/*', Rule(_PLANNING + ('proto',), ('status', 'protobuf'))),
    ('planner/service/*', Rule(_PLANNING + ('planner/dispatch', 'planner/questions', 'planner/wire') + _WIRE, _GRPC)),
    ('planner/cli/remote/*', Rule(_PLANNING + ('planner/cli', 'planner/questions', 'planner/wire') + _WIRE,
                                  _GRPC + ('json', 'posix'))),
    ('planner/cli/page/*', Rule(_PLANNING + ('planner/cli', 'planner/questions'), ('status', 'json'))),
    ('planner/cli/*', Rule(_PLANNING + ('planner/questions',), ('status', 'json', 'posix'))),
    ('planner/main.cc', Rule(_PLANNING + ('planner/dispatch', 'planner/service') + _WIRE, _GRPC + ('posix',))),
    ('worker/engine/*', Rule(_ENGINE, ('status',))),
    ('worker/cpu/*', Rule(_ENGINE, ('status',))),
    ('worker/cuda/dispatch.*', Rule(_ENGINE, ('status',))),
    ('worker/cuda/workspace.*', Rule(_ENGINE)),
    ('worker/cuda/*', Rule(_ENGINE, ('status', 'cuda'))),
    ('worker/comm/*', Rule(_ENGINE, ('status', 'posix'))),
    ('worker/weights/*', Rule(_ENGINE + ('common/checkpoint',), ('status',))),
    ('worker/service/*', Rule(_ENGINE + ('common/checkpoint', 'worker/weights', 'worker/cpu', 'worker/comm') + _WIRE, _GRPC + ('posix',))),
    ('worker/choose_backend.*', Rule(_ENGINE + ('worker/cpu', 'worker/cuda', 'worker/comm'), ('status',))),
    ('worker/main.cc', Rule(_ENGINE + ('worker/cpu', 'worker/comm', 'worker/service') + _WIRE,
                            _GRPC + ('posix',))),
)

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def rule_of(path):
    return next((rule for pattern, rule in RULES if fnmatch.fnmatchcase(path, pattern)), None)


def _refusal(path, rule, quote, name):
    """Why `path` may not include `name`, or None."""
    if name.endswith('.pb.h'):
        return None if 'proto' in rule.allow else 'generated messages end at the services'
    for library, starts in LIBRARIES.items():
        if name.startswith(starts):
            return None if library in rule.libraries else f'library {library} is not allowed here'
    if quote == '<' and '/' not in name:
        if rule.pure and name in IMPURE:
            return 'this folder is pure: no I/O, clock, threads, randomness or unordered containers'
        return None
    folder = path.rsplit('/', 1)[0]
    if name.startswith(tuple(f'{f}/' for f in rule.allow + (folder,))):
        return None
    if name.startswith('absl/'):
        return 'of Abseil only status and strings are used'
    return 'not in the allow-list of this folder'


def check_layers(repo):
    for path in repo.cpp('common/', 'planner/', 'worker/'):
        rule = rule_of(path)
        if rule is None:
            yield Finding(path, 1, 'layers', 'this folder has no rule in tests/tidy/layers.py')
            continue
        for number, line in enumerate(repo.lines(path), 1):
            match = _INCLUDE.match(line)
            reason = _refusal(path, rule, *match.groups()) if match else None
            if reason:
                yield Finding(path, number, 'layers', f'includes {match.group(2)}: {reason}')
