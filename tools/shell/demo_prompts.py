#!/usr/bin/env python3
"""Prints the demo's prompts, each ended by a NUL: the smoke prompt of tests/data/pair, whose answer is known, then the
first held-out questions of the generated text, as they come.

  demo_prompts.py COUNT
"""

import itertools
import json
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, 'tools/pair')
import text  # noqa: E402  # needs the path

SEED = 3  # that of tools/pair/evaluate.py


def main():
    with open('tests/data/pair/smoke.json', encoding='utf-8') as file:
        print(json.load(file)['prompt'], end='\0')
    for document in itertools.islice(text.documents(SEED, held_out=True), int(sys.argv[1]) - 1):
        print(document.prompt(), end='\0')


if __name__ == '__main__':
    main()
