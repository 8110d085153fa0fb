"""Trains the draft on hidden states of the frozen target, resumable.

    torchrun --nproc-per-node 2 tools/pair/train_draft.py --target RUN/target.pt --out RUN/draft.pt --steps 2000

In each row of training text some anchors are drawn; for row k of an anchor's block, with p_t the target's distribution
(after the true text) and p_d the draft's (with the Markov bias of the true token before):
    loss = mean_k w_k (c CE(p_d, token) + (1 - c) TV(p_d, p_t) + BCE(confidence, 1 - TV)),   w_k = exp(-k / 4),  k from 0.
c falls from 1 to 0.1 over the first third of the steps: TV alone hardly moves a draft that knows nothing.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F

import kda
import shapes
from batches import Batches
from draft import Draft
from target import Target
from training import WORLD, train


def draw_anchors(weights: torch.Tensor, count: int, block: int, generator: torch.Generator) -> torch.Tensor:
    """Positions [rows, count] whose next token is part of an answer and whose block ends inside the row."""
    last = weights.shape[1] - block
    chance = (weights[:, 1 : last + 1] == 1).float() + 1e-6
    chance[:, 0] = 0.0  # a block has at least one row of context
    return torch.multinomial(chance, count, generator=generator)


def block_losses(draft: Draft, tokens, logits, taps, at):
    """TV distance, cross entropy and confidence loss of each row of each block, [rows, blocks, N]."""
    rows = torch.arange(tokens.shape[0])[:, None, None]
    offset = at[..., None] + torch.arange(draft.block)
    before, wanted = tokens[rows, offset], tokens[rows, offset + 1]
    hidden = draft.block_hidden(draft.context_rows(taps), tokens[rows[..., 0], at], at)
    guess = draft.base_logits(hidden) + draft.markov_bias(before)
    likely = F.log_softmax(guess, dim=-1)
    cross = -likely.gather(-1, wanted[..., None])[..., 0]
    distance = 0.5 * (likely.exp() - logits.softmax(-1)[rows, offset]).abs().sum(-1)
    trust = F.binary_cross_entropy_with_logits(draft.confidence(hidden, before), 1 - distance.detach(), reduction="none")
    agree = guess.argmax(-1) == logits.argmax(-1)[rows, offset]
    return distance, cross, trust, agree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--anchors", type=int, default=24)
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    target = Target(shapes.TARGET)
    target.load_state_dict(torch.load(args.target)["model"])
    target.eval().requires_grad_(False)
    draft = Draft(shapes.DRAFT, target.model.embed_tokens.weight, target.lm_head.weight)
    batches = Batches(args.seed, args.rows, args.length)
    importance = torch.exp(-torch.arange(draft.block) / 4.0)

    def loss_at(batch: int):
        cross_weight = max(0.1, 1 - 0.9 * 3 * batch / (args.steps * WORLD))
        tokens, weights = batches.at(batch)
        at = draw_anchors(weights, args.anchors, draft.block, torch.Generator().manual_seed(batch))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                logits, _, taps = target(tokens[:, :-1], form=kda.chunked, taps=tuple(shapes.TAPS))
            distance, cross, trust, agree = block_losses(draft, tokens, logits, taps, at)
        whole = agree.float().cumprod(-1).sum(-1).mean().item()
        words = f"distance {distance.mean().item():.4f} accepted {whole:.3f}"
        return ((cross_weight * cross + (1 - cross_weight) * distance + trust) * importance).mean(), words

    train(draft, loss_at, args.out, args.steps)


if __name__ == "__main__":
    main()
