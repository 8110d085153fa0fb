"""Each check fires on a planted fault, and stays silent on the same tree without it."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import layers  # noqa: E402
import repo as repo_module  # noqa: E402
import tidy  # noqa: E402

HEADER = '#ifndef KVASIR_{0}_H_\n#define KVASIR_{0}_H_\n{1}\n#endif  // KVASIR_{0}_H_\n'
RECORD = '# 1. Layers\n\n## Status\n\n## Context\n\n## Decision\n\n## Alternatives\n\n## Consequences\n'
CLEAN = {
    'README.md': '# Kvasir\n\nSee [the guide](CONTRIBUTING.md#habits) and `common/base/a.h`.\n',
    'CONTRIBUTING.md': '# Contributing\n\n## Habits\n\n`tools/build`\n',
    'common/base/CMakeLists.txt': 'kvasir_library(NAME common_base HDRS a.h)\n',
    'common/base/a.h': HEADER.format('COMMON_BASE_A', '#include <vector>\nstatic_assert(sizeof(int) == 4);'),
    'planner/core/CMakeLists.txt': 'kvasir_library(NAME planner_core SRCS b.cc)\n',
    'planner/core/b.cc': '// A double rand() in a comment, or "float" in text, is no fault.\n'
                         '#include "common/base/a.h"\nconst char* kName = "float";\n',
    'tests/planner/CMakeLists.txt': 'kvasir_test(NAME planner_core_test SRCS core/b_test.cc)\n',
    'tests/planner/core/b_case.h': HEADER.format('TESTS_PLANNER_CORE_B_CASE', ''),
    'tests/planner/core/b_test.cc': '#include "tests/planner/core/b_case.h"\nvoid B() { ExpectGolden("plan/small.txt", ""); }\n',
    'tests/golden/plan/small.txt': 'plan\n',
    'tools/build': '#!/usr/bin/env bash\nsource "$(dirname "$0")/shell/habit.sh"\n',
    'docs/adr/0001-layers.md': RECORD,
}

# (check, file, its planted text; None: the file is removed; "+x" before the text: added to the clean text)
PLANTED = (
    ('layers', 'planner/core/b.cc', '#include "worker/engine/arena.h"\n'),
    ('layers', 'planner/core/b.cc', '#include <grpcpp/grpcpp.h>\n'),
    ('layers', 'planner/core/b.cc', '#include <chrono>\n'),
    ('layers', 'planner/core/b.cc', '#include "absl/container/flat_hash_map.h"\n'),
    ('layers', 'planner/core/b.cc', '#include "kvasir/plan/v1/plan.pb.h"\n'),
    ('layers', 'common/base/a.h', '#include "planner/core/b.h"\n'),
    ('layers', 'common/base/a.h', '#include "tests/testing/golden.h"\n'),
    ('layers', 'common/new/c.h', HEADER.format('COMMON_NEW_C', '')),
    ('words', 'common/base/a.h', 'void F() { assert(true); }\n'),
    ('words', 'common/base/a.h', 'absl::Mutex mutex;\n'),
    ('words', 'common/base/a.h', 'using namespace std;\n'),
    ('words', 'common/base/a.h', 'class PlanManager {};\n'),
    ('words', 'planner/core/b.cc', 'std::unordered_map<int, int> m;\n'),
    ('words', 'planner/core/b.cc', 'float ratio = 0;\n'),
    ('words', 'planner/core/b.cc', 'double Ratio();\n'),
    ('words', 'planner/core/b.cc', 'int seed = rand();\n'),
    ('words', 'planner/core/b.cc', 'auto home = std::getenv("HOME");\n'),
    ('words', 'planner/core/b.cc', 'auto now = time(nullptr);\n'),
    ('words', 'planner/core/b.cc', 'static int counter = 0;\n'),
    ('names', 'common/base/string_utils.h', HEADER.format('COMMON_BASE_STRING_UTILS', '')),
    ('names', 'common/misc/d.h', HEADER.format('COMMON_MISC_D', '')),
    ('marks', 'common/base/a.h', '// TO' 'DO: later\n'),
    ('marks', 'README.md', 'FIX' 'ME\n'),
    ('length', 'planner/core/b.cc', '// line\n' * 501),
    ('length', 'tests/planner/core/b_test.cc', '// line\n' * 801),
    ('length', 'tools/build', ': line\n' * 61),
    ('guards', 'common/base/a.h', HEADER.format('COMMON_BASE_WRONG', '')),
    ('guards', 'common/base/a.h', '#pragma once\n'),
    ('listed', 'common/base/CMakeLists.txt', 'kvasir_library(NAME common_base HDRS aa.h)\n'),
    ('listed', 'tests/planner/CMakeLists.txt', 'kvasir_test(NAME planner_core_test SRCS core/bb_test.cc)\n'),
    ('listed', 'tests/planner/unused.h', HEADER.format('TESTS_PLANNER_UNUSED', '')),
    ('golden', 'tests/golden/plan/stale.txt', 'plan\n'),
    ('golden', 'tests/golden/other/stale.txt', 'plan\n'),
    ('whitespace', 'README.md', '# Kvasir  \n'),
    ('whitespace', 'README.md', '# Kvasir'),
    ('tools', 'tools/mend', CLEAN['tools/build']),
    ('tools', 'tools/build', '#!/usr/bin/env bash\n'),
    ('titles', 'README.md', '# One\n\n# Two\n'),
    ('titles', 'README.md', 'none\n'),
    ('links', 'README.md', '# Kvasir\n\n[gone](docs/gone.md)\n'),
    ('links', 'README.md', '# Kvasir\n\n[gone](CONTRIBUTING.md#no-such-heading)\n'),
    ('paths', 'README.md', '# Kvasir\n\n`common/base/gone.h`\n'),
    ('paths', 'README.md', '# Kvasir\n\n`common/base/a.{h,cc}`\n'),
    ('records', 'docs/adr/0001-layers.md', '# 1. Layers\n\n## Status\n'),
    ('records', 'docs/adr/0003-late.md', RECORD),
    ('records', 'docs/adr/notes.md', RECORD),
    ('records', 'docs/adr/0001-layers.md', RECORD + 'line\n' * 60),
)


class Tree(tempfile.TemporaryDirectory):
    def __init__(self, files):
        super().__init__()
        for path, text in files.items():
            full = os.path.join(self.name, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w', encoding='utf-8') as file:
                file.write(text)
            if path.startswith('tools/'):
                os.chmod(full, 0o755)


class TidyTest(unittest.TestCase):
    def test_the_clean_tree_has_no_findings(self):
        with Tree(CLEAN) as root:
            self.assertEqual([], [str(f) for f in tidy.findings_of(root)])

    def test_each_check_fires_on_a_planted_fault(self):
        for check, path, text in PLANTED:
            with self.subTest(check=check, path=path, text=text[:60]), Tree({**CLEAN, path: text}) as root:
                found = [f for f in tidy.findings_of(root) if f.check == check]
                self.assertTrue(found, 'the check did not fire')
                self.assertIn(path.split('/')[0], {f.path.split('/')[0] for f in found})

    def test_each_check_has_a_planted_fault(self):
        planted = {check for check, _, _ in PLANTED}
        self.assertEqual(planted, {check.__name__.removeprefix('check_') for check in tidy.CHECKS})

    def test_a_tool_that_cannot_be_run_is_found(self):
        with Tree(CLEAN) as root:
            os.chmod(os.path.join(root, 'tools/build'), 0o644)
            self.assertEqual(['not executable'], [f.message for f in tidy.findings_of(root)])

    def test_comments_and_literals_are_no_code(self):
        text = 'int a;  // double\n/* float\n */ const char* s = "double \\" float"; char c = \'"\'; int b = 1\'000;\n'
        code = repo_module.code_only(text)
        self.assertNotIn('double', code)
        self.assertNotIn('float', code)
        self.assertEqual(text.count('\n'), code.count('\n'))
        self.assertIn('int b', code)

    def test_the_first_rule_that_matches_decides(self):
        self.assertIn('grpc', layers.rule_of('planner/dispatch/dispatcher.cc').libraries)
        self.assertNotIn('grpc', layers.rule_of('planner/dispatch/apply_machine.cc').libraries)
        self.assertNotIn('grpc', layers.rule_of('planner/cli/main.cc').libraries)
        self.assertIsNone(layers.rule_of('planner/other/x.cc'))

    def test_the_program_prints_findings_and_fails(self):
        program = [sys.executable, tidy.__file__]
        with Tree({**CLEAN, 'README.md': 'none\n'}) as root:
            result = subprocess.run(program + [root], capture_output=True, text=True, check=False)
            self.assertEqual(1, result.returncode)
            self.assertIn('README.md:1: [titles]', result.stdout)
        with Tree(CLEAN) as root:
            self.assertEqual(0, subprocess.run(program + [root], capture_output=True, check=False).returncode)


if __name__ == '__main__':
    unittest.main()
