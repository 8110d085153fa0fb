"""The pair as torch modules, from training states or from checkpoints, and back."""

from pathlib import Path

import torch
from torch import Tensor

import checkpoint
from draft import Draft
from target import Target

HALF, FULL = "BF16", "F32"
KINDS = {HALF: torch.bfloat16, FULL: torch.float32}


def as_bytes(tensor: Tensor, dtype: str) -> bytes:
    return tensor.detach().to(KINDS[dtype]).contiguous().flatten().view(torch.uint8).numpy().tobytes()


def tensors_of(module: torch.nn.Module, shapes: dict[str, list[int]], dtype: str) -> dict:
    """The module's weights as a checkpoint's tensors; names and shapes must be exactly `shapes`."""
    state = module.state_dict()
    if sorted(state) != sorted(shapes):
        raise ValueError(f"names differ: {sorted(set(state) ^ set(shapes))}")
    for name, tensor in state.items():
        if list(tensor.shape) != shapes[name]:
            raise ValueError(f"{name} is {list(tensor.shape)}, expected {shapes[name]}")
    return {name: (dtype, shapes[name], as_bytes(tensor, dtype)) for name, tensor in state.items()}


def write(folder: Path, target: Target, draft: Draft, dtype: str = HALF) -> None:
    for name, module, shapes in (("target", target, checkpoint.target_shapes(target.config)),
                                 ("draft", draft, checkpoint.draft_shapes(draft.config))):
        config = module.config | {"dtype": {HALF: "bfloat16", FULL: "float32"}[dtype]}
        checkpoint.write(folder / name, config, tensors_of(module, shapes, dtype))


def load_into(module: torch.nn.Module, tensors: dict) -> None:
    state = {name: torch.frombuffer(bytearray(data), dtype=KINDS[dtype]).view(shape).float()
             for name, (dtype, shape, data) in tensors.items()}
    module.load_state_dict(state)
    module.eval().requires_grad_(False)


def read(folder: Path) -> tuple[Target, Draft]:
    """Weights as stored, computed with in fp32."""
    config, tensors = checkpoint.read(folder / "target")
    target = Target(config)
    load_into(target, tensors)
    config, tensors = checkpoint.read(folder / "draft")
    draft = Draft(config, target.model.embed_tokens.weight, target.lm_head.weight)
    load_into(draft, tensors)
    return target, draft


def from_training(target_state: Path, draft_state: Path | None) -> tuple[Target, Draft]:
    import shapes

    target = Target(shapes.TARGET)
    target.load_state_dict(torch.load(target_state)["model"])
    draft = Draft(shapes.DRAFT, target.model.embed_tokens.weight, target.lm_head.weight)
    if draft_state is not None:
        draft.load_state_dict(torch.load(draft_state)["model"])
    for module in (target, draft):
        module.eval().requires_grad_(False)
    return target, draft
