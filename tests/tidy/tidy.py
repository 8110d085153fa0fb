"""Style as a test: what a review should not have to discuss.

  tidy.py [ROOT]     prints each finding as path:line: [check] message; exit 1 if there is one
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from docs import check_links, check_paths, check_records, check_titles  # noqa: E402
from layers import check_layers  # noqa: E402
from repo import Repo  # noqa: E402
from shape import check_golden, check_guards, check_length, check_listed, check_tools, check_whitespace  # noqa: E402
from words import check_marks, check_names, check_words  # noqa: E402

CHECKS = (check_layers, check_words, check_names, check_marks, check_length, check_guards, check_listed, check_golden,
          check_whitespace, check_tools, check_titles, check_links, check_paths, check_records)


def findings_of(root):
    repo = Repo(root)
    return sorted(finding for check in CHECKS for finding in check(repo))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), '..', '..')
    findings = findings_of(os.path.abspath(root))
    for finding in findings:
        print(finding)
    print(f'tidy: {len(findings)} findings in {len(Repo(root).files)} files')
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
