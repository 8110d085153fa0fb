"""How published checkpoints keep what transformers keeps otherwise: one tensor for each expert, the names of
Kimi-Linear, and DeepSeek-V3's E4M3 weights with the scales of their blocks."""

import torch

BLOCK = 128
E4M3_MAX = 448.0


def _experts(name, tensor, parts):
    """One expert's matrices of a tensor of all experts; the gate's rows stand above those of `up`."""
    gate, up, down = parts
    if name.endswith("experts.gate_up_proj"):
        prefix = name.removesuffix("gate_up_proj")
        width = tensor.shape[1] // 2
        for expert, rows in enumerate(tensor):
            yield f"{prefix}{expert}.{gate}.weight", rows[:width]
            yield f"{prefix}{expert}.{up}.weight", rows[width:]
    elif name.endswith("experts.down_proj"):
        for expert, rows in enumerate(tensor):
            yield f"{name.removesuffix('down_proj')}{expert}.{down}.weight", rows
    else:
        yield name, tensor


def _kimi_linear(name, tensor):
    name = name.replace(".forget_gate.", ".")
    if ".mlp.experts." in name or ".mlp.shared_experts." in name or ".mlp.gate." in name:
        name = name.replace(".mlp.", ".block_sparse_moe.")
    if name.endswith("self_attn.conv1d.weight"):
        for letter, rows in zip("qkv", tensor.chunk(3)):
            yield name.replace("conv1d", f"{letter}_conv1d"), rows
    else:
        yield from _experts(name, tensor, ("w1", "w3", "w2"))


def published(family, name, tensor):
    """The tensors, by their published names, that a tensor of transformers' model is made of."""
    if family == "kimi_linear":
        yield from _kimi_linear(name, tensor)
    else:
        yield from _experts(name, tensor, ("gate_proj", "up_proj", "down_proj"))


def has_blocks(name):
    """Whether DeepSeek-V3 publishes this weight in E4M3: the projections of its layers, but not the router."""
    return "_proj" in name and name.endswith(".weight")


def to_blocks(weight):
    """E4M3 elements and the F32 scale of each 128 x 128 of them, the last ones cut off at the edges."""
    rows, cols = weight.shape
    elements = torch.empty(rows, cols, dtype=torch.float8_e4m3fn)
    scales = torch.empty(-(-rows // BLOCK), -(-cols // BLOCK))
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            at = (slice(i * BLOCK, (i + 1) * BLOCK), slice(j * BLOCK, (j + 1) * BLOCK))
            scales[i, j] = weight[at].abs().max() / E4M3_MAX
            elements[at] = (weight[at] / scales[i, j]).to(torch.float8_e4m3fn)
    return elements, scales


def of_blocks(elements, scales):
    """The weights that E4M3 elements and scales stand for."""
    spread = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    return elements.float() * spread[: elements.shape[0], : elements.shape[1]]
