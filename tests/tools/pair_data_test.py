"""The pair's text and files: what is held out is never trained on, answers are right, and names are the engine's.

    python3 -B tests/tools/pair_data_test.py
"""

import itertools
import json
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'pair'))

import checkpoint  # noqa: E402
import facts  # noqa: E402
import text  # noqa: E402

DATA = ROOT / 'tests' / 'data' / 'pair'
LARGEST_BYTES = 12_000_000  # of everything that is shipped
COUNT = 5_000


def some(seed, held_out, count=COUNT):
    return list(itertools.islice(text.documents(seed, held_out), count))


class Text(unittest.TestCase):
    def test_equal_seeds_give_equal_documents(self):
        self.assertEqual(some(5, False, 50), some(5, False, 50))
        self.assertNotEqual(some(5, False, 50), some(6, False, 50))

    def test_nothing_held_out_is_trained_on(self):
        trained, held_out = some(1, False), some(1, True)
        self.assertFalse({d.key for d in trained} & {d.key for d in held_out})
        self.assertFalse({d.question for d in trained} & {d.question for d in held_out})

    def test_an_operand_pair_is_on_one_side_in_every_wording_and_order(self):
        sides = {}
        for held_out in (False, True):
            for document in some(2, held_out):
                for a, sign, b in re.findall(r'(\d+) (plus|minus) (\d+) is', document.answer):
                    pair = (sign, *(sorted([int(a), int(b)]) if sign == 'plus' else [int(a), int(b)]))
                    self.assertEqual(sides.setdefault(pair, held_out), held_out, document)

    def test_answers_are_right(self):
        for document in some(3, False) + some(3, True):
            for a, sign, b, c in re.findall(r'(\d+) (plus|minus|times) (\d+) is (\d+)', document.answer):
                right = {'plus': int(a) + int(b), 'minus': int(a) - int(b), 'times': int(a) * int(b)}[sign]
                self.assertEqual(int(c), right, document)
            if document.kind in ('count', 'order'):
                numbers = [int(n) for n in re.findall(r'\d+', document.answer)]
                asked = [int(n) for n in re.findall(r'\d+', document.question)]
                ends = [numbers[0], numbers[-1]] if document.kind == 'count' else sorted(asked)
                self.assertEqual(asked if document.kind == 'count' else numbers, ends, document)

    def test_what_is_known_by_heart_is_trained_in_some_wording(self):
        trained = {d.answer for seed in range(3) for d in some(seed, False, 20_000)}
        for document in some(4, True):
            if document.kind in ('capital', 'fact', 'times'):
                self.assertIn(document.answer, trained, document)

    def test_tokens_are_the_byte_vocabulary(self):
        for document in some(7, True, 500):
            self.assertEqual(document.prompt_tokens()[0], text.BOS)
            self.assertEqual(document.answer_tokens()[-1], text.EOS)
            self.assertTrue(all(t < 128 for t in document.prompt_tokens()[1:] + document.answer_tokens()[:-1]))
        self.assertEqual(len(facts.WORDS), len(set(facts.WORDS)))


class Files(unittest.TestCase):
    def check(self, folder, dtype):
        for role, shapes in (('target', checkpoint.target_shapes), ('draft', checkpoint.draft_shapes)):
            config, tensors = checkpoint.read(folder / role)
            self.assertEqual({name: shape for name, (_, shape, _) in tensors.items()}, shapes(config))
            self.assertEqual({dtype}, {kind for kind, _, _ in tensors.values()})

    def test_checkpoints_hold_exactly_the_named_tensors(self):
        self.check(DATA / 'tiny', 'F32')
        self.check(DATA, 'BF16')

    def test_the_whole_is_small(self):
        self.assertLess(sum(p.stat().st_size for p in DATA.rglob('*') if p.is_file()), LARGEST_BYTES)

    def test_the_smoke_prompt_is_held_out_and_answered_right(self):
        smoke = json.loads((DATA / 'smoke.json').read_text())
        question = 'Name the capital of France.'
        self.assertEqual(smoke['prompt'], f'Q: {question}\nA:')
        self.assertTrue(text.is_held_out(question))  # a fact's key is its wording
        self.assertEqual(smoke['answer'], ' The capital of France is Paris.')
        self.assertEqual(smoke['prompt_tokens'], [text.BOS, *smoke['prompt'].encode()])
        self.assertEqual(smoke['answer_tokens'], [*smoke['answer'].encode(), text.EOS])


if __name__ == '__main__':
    unittest.main()
