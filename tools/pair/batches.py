"""Rows of training tokens: documents of one seed one after another, each between BOS and EOS, cut at the row's end."""

import torch
from torch import Tensor

import text

QUESTION_WEIGHT = 0.1  # a question cannot be foreseen; its words can


class Batches:
    """Batch i depends on the seed and i alone, so a run that resumes reads what it would have read."""

    def __init__(self, seed: int, rows: int, length: int, held_out: bool = False):
        self.seed, self.rows, self.length, self.held_out = seed, rows, length, held_out

    def row(self, source) -> tuple[list[int], list[float]]:
        tokens, weights = [], []
        while len(tokens) <= self.length:
            document = next(source)
            prompt, answer = document.prompt_tokens(), document.answer_tokens()
            tokens += prompt + answer
            weights += [0.0] + [QUESTION_WEIGHT] * (len(prompt) - 1) + [1.0] * len(answer)
        return tokens[: self.length + 1], weights[: self.length + 1]

    def at(self, index: int) -> tuple[Tensor, Tensor]:
        """tokens [rows, length + 1]; weight of each token as something to be predicted, the same shape."""
        source = text.documents(f"{self.seed} {index}", self.held_out)
        rows = [self.row(source) for _ in range(self.rows)]
        return torch.tensor([tokens for tokens, _ in rows]), torch.tensor([weights for _, weights in rows])
