#!/usr/bin/env python3
"""Writes small random checkpoints and what transformers computes from them.

    python3 -m venv /opt/reference && /opt/reference/bin/pip install torch transformers safetensors
    /opt/reference/bin/python tools/reference/checkpoints.py tests/data/checkpoints [NAME ...]

For each model of small_models.py it writes a folder with config.json and model.safetensors, as the published
checkpoints have them (published_form.py), and reference.safetensors: `tokens` [n] i32, and `logits` [n, vocab]
f32, computed in fp32 from the stored weights (BF16 and F32 ones as they are, E4M3 ones times their scales) in
one causal pass over the tokens; and where the weights were rounded to BF16 to be stored, `logits_unrounded`,
computed from the weights before. What was written is read again by transformers, from the published names, and
must give the same logits. E4M3 weights are not, and are multiplied out here: transformers divides a matrix into
equal blocks, where DeepSeek's own code (inference/kernel.py, weight_dequant) cuts off the last one. A module of
multi-token prediction, which transformers leaves out, is computed beside the model (mtp_module.py): `mtp_logits` and
`mtp_chain`.

Everything is seeded: a second run gives the same weights, and the same logits up to the last bits that the
machine's matrix products leave open. A choice of experts jumps where two score alike, and rounding moves scores
by some thousandths; so each model takes the first seed with which rounding what is cached, and the weights, to
bf16 leaves the logits where they are. Comparing logits then measures arithmetic, and not ties.
"""

import argparse
import copy
import itertools
import json
import pathlib

import mtp_module
import torch
import transformers
from published_form import has_blocks, of_blocks, published, to_blocks
from safetensors import torch as safetensors
from small_models import MODELS

TOKENS = 40
# Where the reference of an MTP module drafts a chain, and how long.
CHAIN_AFTER, CHAIN_TOKENS = 21, 3


def draw(name, shape, generator):
    """Weights that keep activations near 1, norms near 1, a bias that changes what is chosen, and gates with
    which a state remembers for some tokens."""
    values = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 1 + values / 8
    if name.endswith("correction_bias"):
        return values / 8
    if name.endswith("A_log"):
        return values / 2
    if name.endswith("dt_bias"):
        return values - 2
    if name.endswith("embed_tokens.weight"):
        return values
    if name.endswith("mlp.gate.weight"):
        return 2 * values / shape[-1] ** 0.5
    return values / shape[-1] ** 0.5


def stored_form(fields, name, value):
    """The tensors that the checkpoint stores for one of its tensors, and the weights that they stand for."""
    if "quantization_config" in fields and has_blocks(name):
        elements, scales = to_blocks(value)
        return {name: elements, f"{name}_scale_inv": scales}, of_blocks(elements, scales)
    kept = name.endswith(("correction_bias", "A_log", "dt_bias"))
    if not kept and fields.get("dtype") != "float32":
        value = value.bfloat16()
    return {name: value.contiguous().clone()}, value.float()


def logits_of(model, tokens):
    with torch.no_grad():
        return model(tokens.long()[None], use_cache=False).logits[0].float().contiguous()


def logits_of_rounded(model, tokens, rope_dim):
    """The logits where what a layer caches is rounded to bf16: latents, rotary lanes, and what short
    convolutions look back to."""

    def round_all(_module, _inputs, output):
        return output.bfloat16().float()

    def round_rope(_module, _inputs, output):
        return torch.cat([output[..., :-rope_dim], output[..., -rope_dim:].bfloat16().float()], dim=-1)

    hooks = []
    for name, module in model.named_modules():
        recurrent = hasattr(model.get_submodule(name.rpartition(".")[0]), "conv1d")
        if name.endswith("kv_a_layernorm") or (recurrent and name.endswith(("q_proj", "k_proj", "v_proj"))):
            hooks.append(module.register_forward_hook(round_all))
        if name.endswith("kv_a_proj_with_mqa"):
            hooks.append(module.register_forward_hook(round_rope))
    logits = logits_of(model, tokens)
    for hook in hooks:
        hook.remove()
    return logits


def make_model(fields):
    plain = {name: value for name, value in fields.items() if name != "quantization_config"}
    config = transformers.AutoConfig.for_model(**copy.deepcopy(plain))
    config._attn_implementation = "eager"
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def write(folder, fields, seed):
    """Writes the model of this seed, unless rounding would move a choice."""
    generator = torch.Generator().manual_seed(seed)
    model = make_model(fields)
    state = model.state_dict()
    mtp = mtp_module.MtpModule(model.config) if fields.get("num_nextn_predict_layers") else None
    if mtp is not None:
        prefix = f"model.layers.{fields['num_hidden_layers']}."
        state.update({prefix + name: value for name, value in mtp.state_dict().items()})
    drawn, stored = {}, {}
    for name in sorted(state):
        drawn[name] = draw(name, state[name].shape, generator)
    tokens = torch.randint(0, fields["vocab_size"], (TOKENS,), generator=generator, dtype=torch.int32)
    for name, value in drawn.items():
        state[name].copy_(value)
    unrounded = logits_of(model, tokens)
    for name, value in drawn.items():
        # Views of one tensor: what a part stands for is written back into the whole.
        state[name].copy_(value)
        for part, view in published(fields["model_type"], name, state[name]):
            tensors, weights = stored_form(fields, part, view)
            stored.update(tensors)
            view.copy_(weights)
    logits = logits_of(model, tokens)
    compared = [logits_of_rounded(model, tokens, fields["qk_rope_head_dim"])]
    blocks = "quantization_config" in fields
    if not blocks:
        compared += [unrounded]
    if any((other - logits).abs().max() > 0.01 * logits.abs().max() for other in compared):
        return False
    reference = {"tokens": tokens, "logits": logits}
    if not blocks and fields.get("dtype") != "float32":
        reference["logits_unrounded"] = unrounded
    if mtp is not None:
        reference.update(mtp_module.reference(model, mtp.eval(), tokens, CHAIN_AFTER, CHAIN_TOKENS))
        # Published checkpoints hold both a second time.
        stored[f"{prefix}embed_tokens.weight"] = stored["model.embed_tokens.weight"].clone()
        stored[f"{prefix}shared_head.head.weight"] = stored["lm_head.weight"].clone()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields, indent=1) + "\n")
    safetensors.save_file(stored, folder / "model.safetensors")
    safetensors.save_file(reference, folder / "reference.safetensors")
    if not blocks:
        read = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").eval()
        if not torch.equal(logits_of(read, tokens), logits):
            raise SystemExit(f"{folder}: transformers reads other weights than were written")
    print(f"{folder}: seed {seed}, {len(stored)} tensors, {sum(t.nbytes for t in stored.values())} bytes, "
          f"logits of magnitude {logits.abs().max():.3f}, transformers {transformers.__version__}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(MODELS))
    arguments = parser.parse_args()
    for name in arguments.names or MODELS:
        next(seed for seed in itertools.count(1) if write(arguments.folder / name, MODELS[name], seed))


if __name__ == "__main__":
    main()
