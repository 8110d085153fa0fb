"""Trains the target: cross entropy on generated text, resumable.

    torchrun --nproc-per-node 2 tools/pair/train_target.py --out RUN/target.pt --steps 3000
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F

import kda
import shapes
from batches import Batches
from layers import Moe
from target import Target
from training import train

BIAS_RATE = 0.005


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    model = Target(shapes.TARGET)
    batches = Batches(args.seed, args.rows, args.length)

    def loss_at(batch: int):
        tokens, weights = batches.at(batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, _, _ = model(tokens[:, :-1], form=kda.chunked)
        losses = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        wanted = weights[:, 1:].flatten()
        with torch.no_grad():
            answer = wanted == 1
            right = (logits.flatten(0, 1)[answer].argmax(-1) == tokens[:, 1:].flatten()[answer]).float().mean()
        words = f"answers {losses[answer].mean().item():.4f} right {right.item():.4f}"
        return (losses * wanted).sum() / wanted.sum(), words

    routed = [module for module in model.modules() if isinstance(module, Moe)]
    train(model, loss_at, args.out, args.steps, lambda: [moe.move_bias(BIAS_RATE) for moe in routed])


if __name__ == "__main__":
    main()
