"""Checkpoints on disk: config.json and model.safetensors in the published models' names. Standard library only.

A safetensors file is the length of its header (8 bytes, little endian), the header as JSON, and the tensors' bytes.
"""

import json
import struct
from pathlib import Path

ALIGNMENT = 64  # of the first tensor's byte in the file


def target_shapes(c: dict) -> dict[str, list[int]]:
    """Every tensor of a Kimi-Linear target with configuration `c`, by name."""
    hidden, linear = c["hidden_size"], c["linear_attn_config"]
    shapes = {"model.embed_tokens.weight": [c["vocab_size"], hidden], "model.norm.weight": [hidden],
              "lm_head.weight": [c["vocab_size"], hidden]}
    for i in range(c["num_hidden_layers"]):
        layer = {"input_layernorm.weight": [hidden], "post_attention_layernorm.weight": [hidden]}
        layer |= kda_shapes(hidden, linear) if i + 1 in linear["kda_layers"] else mla_shapes(c)
        layer |= mlp_shapes("mlp", hidden, c["intermediate_size"]) if i < c["first_k_dense_replace"] else moe_shapes(c)
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def draft_shapes(c: dict) -> dict[str, list[int]]:
    """Every tensor of a DSpark draft with configuration `c`, by name."""
    hidden, vocab, rank = c["hidden_size"], c["vocab_size"], c["markov_rank"]
    shapes = {
        "embed_tokens.weight": [vocab, hidden],
        "context_proj.weight": [hidden, c["num_target_layers"] * c["target_hidden_size"]],
        "context_norm.weight": [hidden],
        "final_norm.weight": [hidden],
        "markov_head.markov_w1.weight": [vocab, rank],
        "markov_head.markov_w2.weight": [vocab, rank],
        "confidence_head.proj.weight": [1, hidden + rank],
        "confidence_head.proj.bias": [1],
    }
    for i in range(c["num_hidden_layers"]):
        layer = {"input_layernorm.weight": [hidden], "post_attention_layernorm.weight": [hidden]}
        layer |= mla_shapes(c) | mlp_shapes("mlp", hidden, c["intermediate_size"])
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def mla_shapes(c: dict) -> dict[str, list[int]]:
    hidden, heads, latent, rope = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"], c["qk_rope_head_dim"]
    queries = heads * (c["qk_nope_head_dim"] + rope)
    if c["q_lora_rank"]:
        shapes = {"q_a_proj.weight": [c["q_lora_rank"], hidden], "q_a_layernorm.weight": [c["q_lora_rank"]],
                  "q_b_proj.weight": [queries, c["q_lora_rank"]]}
    else:
        shapes = {"q_proj.weight": [queries, hidden]}
    shapes |= {"kv_a_proj_with_mqa.weight": [latent + rope, hidden], "kv_a_layernorm.weight": [latent],
               "kv_b_proj.weight": [heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), latent],
               "o_proj.weight": [hidden, heads * c["v_head_dim"]]}
    return {f"self_attn.{name}": shape for name, shape in shapes.items()}


def kda_shapes(hidden: int, linear: dict) -> dict[str, list[int]]:
    heads, dim = linear["num_heads"], linear["head_dim"]
    shapes = {"A_log": [1, 1, heads, 1], "dt_bias": [heads * dim], "b_proj.weight": [heads, hidden],
              "o_norm.weight": [dim], "o_proj.weight": [hidden, heads * dim]}
    for name in "qkv":
        shapes[f"{name}_proj.weight"] = [heads * dim, hidden]
        shapes[f"{name}_conv1d.weight"] = [heads * dim, 1, linear["short_conv_kernel_size"]]
    for name in "fg":
        shapes[f"{name}_a_proj.weight"] = [dim, hidden]
        shapes[f"{name}_b_proj.weight"] = [heads * dim, dim]
    return {f"self_attn.{name}": shape for name, shape in shapes.items()}


def mlp_shapes(prefix: str, hidden: int, inner: int) -> dict[str, list[int]]:
    return {f"{prefix}.gate_proj.weight": [inner, hidden], f"{prefix}.up_proj.weight": [inner, hidden],
            f"{prefix}.down_proj.weight": [hidden, inner]}


def moe_shapes(c: dict) -> dict[str, list[int]]:
    hidden, inner, experts = c["hidden_size"], c["moe_intermediate_size"], c["num_experts"]
    shapes = {"gate.weight": [experts, hidden], "gate.e_score_correction_bias": [experts]}
    for e in range(experts):
        shapes |= {f"experts.{e}.w1.weight": [inner, hidden], f"experts.{e}.w2.weight": [hidden, inner],
                   f"experts.{e}.w3.weight": [inner, hidden]}
    shapes |= mlp_shapes("shared_experts", hidden, inner * c["num_shared_experts"])
    return {f"block_sparse_moe.{name}": shape for name, shape in shapes.items()}


def write_tensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    """tensors: name -> (dtype as BF16 or F32, shape, bytes). Sorted by name, so equal input gives equal files."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors[name][2] for name in sorted(tensors)))


def read_tensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """The tensors of a file of ours (trusted)."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items()}


def write(folder: Path, config: dict, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def read(folder: Path) -> tuple[dict, dict[str, tuple[str, list[int], bytes]]]:
    return json.loads((folder / "config.json").read_text()), read_tensors(folder / "model.safetensors")
