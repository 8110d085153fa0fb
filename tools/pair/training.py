"""What both trainings share: the optimizer, the schedule, the state on disk, and the loop around a step.

Several processes (torchrun) work as one: each reads its own batches, and gradients are averaged.
"""

import os
import time
from pathlib import Path
from typing import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

WORLD, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
MATRIX_RATE, OTHER_RATE = 0.02, 0.004  # peaks


def rate_at(step: int, steps: int, warmup: int = 50, decay: float = 0.4) -> float:
    """Rises over `warmup` steps to 1, stays, and falls linearly over the last `decay` of all steps."""
    fall = (steps - step) / (decay * steps)
    return min((step + 1) / warmup, 1.0) * min(max(fall, 0.01), 1.0)


def orthogonal(matrices: Tensor) -> Tensor:
    """Nearly the closest matrices with equal singular values: five steps of a quintic, in bf16. [n, rows, cols]"""
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
    for _ in range(5):
        square = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon(torch.optim.Optimizer):
    """Momentum whose step is made orthogonal; matrices of one shape go through together."""

    def __init__(self, matrices: list[nn.Parameter], lr: float, momentum: float = 0.95, weight_decay: float = 0.02):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):  # noqa: ARG002
        for group in self.param_groups:
            shapes: dict[tuple, list] = {}
            for p in group["params"]:
                if p.grad is not None:
                    mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                    mean.lerp_(p.grad, 1 - group["momentum"])
                    shapes.setdefault(tuple(p.shape), []).append((p, p.grad.lerp(mean, group["momentum"])))
            for (rows, cols), members in shapes.items():
                steps = orthogonal(torch.stack([step for _, step in members]))
                for (p, _), step in zip(members, steps, strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_(step, alpha=-group["lr"] * max(1.0, rows / cols) ** 0.5)


def optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
    """Muon for the maps between hidden states; AdamW for tables, heads, routers and all that is no matrix."""
    matrices, rest = [], []
    for name, p in model.named_parameters():
        if p.requires_grad:
            table = any(part in name for part in ("embed", "lm_head", "markov", "confidence", "gate.weight"))
            (rest if p.dim() != 2 or table else matrices).append(p)
    return [Muon(matrices, MATRIX_RATE), torch.optim.AdamW(rest, OTHER_RATE, betas=(0.9, 0.97), weight_decay=0.0)]


def average(model: nn.Module) -> None:
    gradients = [p.grad for p in model.parameters() if p.requires_grad]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    for g, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        g.copy_(part.view_as(g) / WORLD)


def save(path: Path, **state: object) -> None:
    torch.save(state, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def train(model: nn.Module, loss_at: Callable[[int], tuple[Tensor, str]], path: Path, steps: int,
          after_step: Callable[[], None] = lambda: None, minutes_between_saves: float = 2.0) -> None:
    """Runs `steps` steps, resuming from `path` if it is there. `loss_at(batch)` gives the loss and what to print."""
    if WORLD > 1:
        dist.init_process_group("gloo")
    steppers, first = optimizers(model), 0
    if path.exists():
        state = torch.load(path)
        model.load_state_dict(state["model"])
        for stepper, kept in zip(steppers, state["optimizers"], strict=True):
            stepper.load_state_dict(kept)
        first = state["step"]
    model.train()
    saved = begun = time.time()
    for step in range(first, steps):
        for stepper, peak in zip(steppers, (MATRIX_RATE, OTHER_RATE), strict=True):
            stepper.param_groups[0]["lr"] = peak * rate_at(step, steps)
        loss, words = loss_at(step * WORLD + RANK)
        loss.backward()
        if WORLD > 1:
            average(model)
        if not all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None):
            raise SystemExit(f"step {step}: a gradient is not finite; the state of the last save stands")
        for stepper in steppers:
            stepper.step()
        model.zero_grad(set_to_none=True)
        after_step()
        last = step + 1 == steps
        if RANK == 0 and (step % 10 == 0 or last):
            print(f"step {step} loss {loss.item():.4f} {words} wall {time.time() - begun:.0f} s "
                  f"cpu {time.process_time():.0f} s", flush=True)
        if RANK == 0 and (last or time.time() - saved > 60 * minutes_between_saves):
            save(path, model=model.state_dict(), optimizers=[s.state_dict() for s in steppers], step=step + 1)
            saved = time.time()
    if WORLD > 1:
        dist.destroy_process_group()
