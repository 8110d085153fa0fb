"""The page of faults: what is read from a test, and that each finding fires."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import repro_page  # noqa: E402

ONE = 'https://github.com/vllm-project/vllm/issues/1'
TWO = 'https://github.com/sgl-project/sglang/pull/2'
ROW = 'https://github.com/vllm-project/vllm/pull/3'
NONE = 'https://github.com/other/engine/pull/4'
LOST = 'https://github.com/vllm-project/vllm/issues/5'
TESTS = f'''// {ONE},
// {TWO}: what went wrong.
TEST(Suite, Name) {{
  Uses("{LOST}");
  const Row rows[] = {{
      // Of the row.
      {{"{ROW}", 1}}}};
}}
'''
LISTED = f'{NONE}\tIt raced.\tPlans do not run.\n'


class Tree(tempfile.TemporaryDirectory):
    def __init__(self, tests=TESTS, listed=LISTED, page=None):
        super().__init__()
        for folder in (repro_page.FOLDER, os.path.dirname(repro_page.PAGE), 'data', 'reference'):
            os.makedirs(os.path.join(self.name, folder))
        self.write(f'{repro_page.FOLDER}/some_test.cc', tests)
        self.write(repro_page.LISTED, listed)
        self.write(repro_page.PAGE, page or '')
        if page is None:
            repro_page.findings_of(self.name, None, True)

    def write(self, path, text):
        with open(os.path.join(self.name, path), 'w', encoding='utf-8') as file:
            file.write(text)

    def public(self, fault, section):
        self.write('data/known_faults.jsonl', json.dumps({'url': fault}) + '\n')
        self.write('reference/vllm_rules.md', f'## 11. Bugs\n1. {section} - x\n## 12. Versions\n{LOST}\n')
        return os.path.join(self.name, 'data')


def findings(root, data=None):
    return repro_page.findings_of(root, data, False)[1]


class ReproPageTest(unittest.TestCase):
    def test_addresses_stand_above_a_test_or_in_rows(self):
        self.assertEqual([(ONE, 'What went wrong.', 'Suite.Name'), (TWO, 'What went wrong.', 'Suite.Name'),
                          (ROW, 'Of the row.', 'Suite.Name')], list(repro_page.tested(TESTS)))

    def test_the_page_names_tests_and_reasons(self):
        with Tree() as root, open(os.path.join(root, repro_page.PAGE), encoding='utf-8') as file:
            text = file.read()
        self.assertIn(f'| [1]({ONE}) | What went wrong. | Suite.Name, `tests/repro/some_test.cc` |', text)
        self.assertIn(f'## other/engine\n\n| fault | what went wrong, and what is right | test |\n|---|---|---|\n'
                      f'| [4]({NONE}) | It raced. | None: Plans do not run. |', text)

    def test_a_page_that_agrees_has_no_findings(self):
        with Tree() as root:
            self.assertEqual([], findings(root))

    def test_a_stale_page_is_found(self):
        with Tree(page='old\n') as root:
            self.assertEqual(1, len(findings(root)))

    def test_a_row_without_a_reason_is_found(self):
        with Tree(listed=f'{NONE}\tIt raced.\t\n') as root:
            self.assertEqual(1, len(findings(root)))

    def test_a_row_of_a_fault_that_has_a_test_is_found(self):
        with Tree(listed=f'{ONE}\tIt raced.\tPlans do not run.\n') as root:
            self.assertEqual(1, len(findings(root)))

    def test_a_public_fault_without_either_is_found(self):
        for fault, section, missing in ((ONE, NONE, 0), (LOST, ONE, 1), (ONE, LOST, 1)):
            tree = Tree()
            with tree as root, self.subTest(fault=fault, section=section):
                self.assertEqual(missing, len(findings(root, tree.public(fault, section))))


if __name__ == '__main__':
    unittest.main()
