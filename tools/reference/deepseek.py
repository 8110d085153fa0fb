#!/usr/bin/env python3
"""Writes small random checkpoints of the DeepSeek family and what transformers computes from them.

    python3 -m venv /opt/reference && /opt/reference/bin/pip install torch transformers safetensors
    /opt/reference/bin/python tools/reference/deepseek.py tests/data/checkpoints

For each model below it writes a folder with config.json and model.safetensors, as the published checkpoints
have them, and reference.safetensors: `tokens` [n] i32, and `logits` [n, vocab] f32, computed in fp32 from the
stored weights (bf16, which fp32 holds exactly) in one causal pass over the tokens.

Everything is seeded: a second run gives the same weights, and the same logits up to the last bits that the
machine's matrix products leave open. A choice of experts jumps where two score alike, and a cache in bf16 moves
scores by some thousandths; so each model takes the first seed with which rounding what is cached to bf16 leaves
all choices as they are. Comparing logits then measures arithmetic, and not ties.
"""

import argparse
import itertools
import json
import pathlib

import torch
import transformers
from safetensors import torch as safetensors

TOKENS = 40

COMMON = {
    "hidden_act": "silu",
    "hidden_size": 48,
    "vocab_size": 96,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-06,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "intermediate_size": 64,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "attention_bias": False,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

# The original context is shorter than the sequence, so that every part of YaRN's ramp is seen.
MODELS = {
    "deepseek-v3-small": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "q_lora_rank": 24,
        "n_routed_experts": 16,
        "num_experts_per_tok": 4,
        "n_shared_experts": 1,
        "n_group": 4,
        "topk_group": 2,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "num_nextn_predict_layers": 0,
        "rope_scaling": {
            "type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "beta_fast": 4,
            "beta_slow": 1,
            "mscale": 1.0,
            "mscale_all_dim": 0.5,
        },
    },
    "deepseek-v2-small": {
        "architectures": ["DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v2",
        "q_lora_rank": None,
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "n_shared_experts": 2,
        "n_group": 4,
        "topk_group": 2,
        "scoring_func": "softmax",
        "topk_method": "group_limited_greedy",
        "norm_topk_prob": False,
        "routed_scaling_factor": 4.0,
        "rope_scaling": {
            "type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 0.707,
            "mscale_all_dim": 0.707,
        },
    },
}


def draw(name, shape, generator):
    """Weights that keep activations near 1, norms near 1, and a bias that changes what is chosen."""
    values = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 1 + values / 8
    if name.endswith("correction_bias"):
        return values / 8
    if name.endswith("embed_tokens.weight"):
        return values
    if name.endswith("mlp.gate.weight"):
        return 2 * values / shape[-1] ** 0.5
    return values / shape[-1] ** 0.5


def expert_names(name, tensor):
    """The names under which published checkpoints keep a tensor that transformers keeps as one."""
    if name.endswith("experts.gate_up_proj"):
        prefix = name.removesuffix("gate_up_proj")
        width = tensor.shape[1] // 2
        for expert, rows in enumerate(tensor):
            yield f"{prefix}{expert}.gate_proj.weight", rows[:width]
            yield f"{prefix}{expert}.up_proj.weight", rows[width:]
    elif name.endswith("experts.down_proj"):
        for expert, rows in enumerate(tensor):
            yield f"{name.removesuffix('down_proj')}{expert}.down_proj.weight", rows
    else:
        yield name, tensor


def logits_of(model, tokens):
    with torch.no_grad():
        return model(tokens.long()[None], use_cache=False).logits[0].float().contiguous()


def rounds_safely(model, tokens, logits, rope_dim):
    """Whether the logits stay within 1 % when what a layer caches is rounded to bf16."""

    def round_latent(_module, _inputs, output):
        return output.bfloat16().float()

    def round_rope(_module, _inputs, output):
        return torch.cat([output[..., :-rope_dim], output[..., -rope_dim:].bfloat16().float()], dim=-1)

    hooks = []
    for name, module in model.named_modules():
        if name.endswith("kv_a_layernorm"):
            hooks.append(module.register_forward_hook(round_latent))
        if name.endswith("kv_a_proj_with_mqa"):
            hooks.append(module.register_forward_hook(round_rope))
    moved = (logits_of(model, tokens) - logits).abs().max() / logits.abs().max()
    for hook in hooks:
        hook.remove()
    return moved < 0.01


def write(folder, fields, seed):
    """Writes the model of this seed, unless rounding would move a choice."""
    generator = torch.Generator().manual_seed(seed)
    config = transformers.AutoConfig.for_model(**json.loads(json.dumps(fields)))
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    state = model.state_dict()
    stored = {}
    for name in sorted(state):
        bias = name.endswith("correction_bias")
        value = draw(name, state[name].shape, generator)
        if not bias:
            value = value.bfloat16()
        state[name].copy_(value.float())
        for part, tensor in expert_names(name, value):
            stored[part] = tensor.contiguous().clone()
    tokens = torch.randint(0, fields["vocab_size"], (TOKENS,), generator=generator, dtype=torch.int32)
    logits = logits_of(model, tokens)
    if not rounds_safely(model, tokens, logits, fields["qk_rope_head_dim"]):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields, indent=1) + "\n")
    safetensors.save_file(stored, folder / "model.safetensors")
    reference = {"tokens": tokens, "logits": logits}
    safetensors.save_file(reference, folder / "reference.safetensors")
    print(f"{folder}: seed {seed}, {len(stored)} tensors, {sum(t.numel() for t in stored.values())} weights, "
          f"logits of magnitude {logits.abs().max():.3f}, transformers {transformers.__version__}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    for name, fields in MODELS.items():
        next(seed for seed in itertools.count(1) if write(folder / name, {**COMMON, **fields}, seed))


if __name__ == "__main__":
    main()
