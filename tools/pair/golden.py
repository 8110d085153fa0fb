"""Writes what the engine is compared with: logits, taps and drafted blocks, computed in fp32 from stored weights.

    python tools/pair/golden.py --pair tests/data/pair          # golden.safetensors beside a trained pair
    python tools/pair/golden.py --tiny tests/data/pair/tiny     # a small random pair, fp32 weights, and its golden

Tensors of a golden, all F32 (numbers of tokens and positions too, which F32 holds exactly):
    tokens [T], logits [T, vocab], tap.L [T, hidden] for each tapped layer L
    block.positions [n] (of the anchors; the anchor is tokens[position], its context all tokens before it)
    block.base_logits [n, N, vocab] (without the Markov bias), block.logits (with it, along the drafted chain)
    block.drafted [n, N] (greedy), block.confidence [n, N] (probabilities, along the drafted chain)
"""

import argparse
import json
from pathlib import Path

import torch

import checkpoint
import pair
import shapes
import text
from draft import Draft
from evaluate import greedy
from target import Target

SMOKE = "Q: Name the capital of France.\nA:"  # held out
TINY_TARGET = shapes.TARGET | {
    "vocab_size": 41, "bos_token_id": 38, "eos_token_id": 39, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 2, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6,
    "intermediate_size": 20, "moe_intermediate_size": 8, "num_experts": 4, "model_max_length": 512,
    "linear_attn_config": {"kda_layers": [1, 3], "full_attn_layers": [2], "num_heads": 2, "head_dim": 8,
                           "short_conv_kernel_size": 4},
}
TINY_DRAFT = shapes.DRAFT | {
    "vocab_size": 41, "draft_vocab_size": 41, "bos_token_id": 38, "eos_token_id": 39, "mask_token_id": 40, "hidden_size": 16,
    "num_hidden_layers": 2, "intermediate_size": 20, "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 12,
    "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "target_hidden_size": 16,
    "target_num_hidden_layers": 3, "num_target_layers": 2, "target_layer_ids": [0, 2], "markov_rank": 8,
    "max_position_embeddings": 512,
}


@torch.no_grad()
def golden(target: Target, draft: Draft, tokens: list[int], positions: list[int]) -> dict[str, torch.Tensor]:
    ids, whole = draft.config["target_layer_ids"], torch.tensor([tokens])
    logits, _, taps = target(whole, taps=tuple(ids))
    at = torch.tensor([positions])
    anchors = whole[:, positions]
    hidden = draft.block_hidden(draft.context_rows(taps), anchors, at)
    base = draft.base_logits(hidden)
    drafted = draft.chain(base, anchors)
    before = torch.cat((anchors[..., None], drafted[..., :-1]), dim=-1)
    found = {"tokens": whole, "logits": logits, "block.positions": at, "block.base_logits": base,
             "block.logits": base + draft.markov_bias(before), "block.drafted": drafted,
             "block.confidence": torch.sigmoid(draft.confidence(hidden, before))}
    found |= {f"tap.{layer}": tap for layer, tap in zip(ids, taps, strict=True)}
    return {name: tensor[0] for name, tensor in found.items()}


def write_golden(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    checkpoint.write_tensors(path, {name: (pair.FULL, list(t.shape), pair.as_bytes(t, pair.FULL)) for name, t in tensors.items()})


def write_pair_golden(folder: Path) -> None:
    target, draft = pair.read(folder)
    prompt = [text.BOS, *SMOKE.encode()]
    with torch.no_grad():
        answer = greedy(target, torch.tensor([prompt]))[0]
    positions = list(range(len(prompt), len(prompt) + len(answer), 12))
    write_golden(folder / "golden.safetensors", golden(target, draft, prompt + answer, positions))
    smoke = {"prompt": SMOKE, "prompt_tokens": prompt, "answer": bytes(answer[:-1]).decode(), "answer_tokens": answer}
    (folder / "smoke.json").write_text(json.dumps(smoke) + "\n")
    print(smoke["prompt"] + smoke["answer"])


def write_tiny(folder: Path) -> None:
    torch.manual_seed(4)
    target = Target(TINY_TARGET)
    draft = Draft(TINY_DRAFT, target.model.embed_tokens.weight, target.lm_head.weight)
    for module in (target, draft):
        for name, parameter in module.named_parameters():  # nothing is left at a value that hides a mistake
            parameter.requires_grad_(False)
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            elif "correction_bias" in name or "proj.bias" in name:
                parameter.uniform_(-0.3, 0.3)
            elif parameter.dim() == 2 and "embed" not in name:
                parameter.normal_(std=parameter.shape[1] ** -0.5)
    draft.head = target.lm_head.weight.detach().clone()
    pair.write(folder, target, draft, pair.FULL)
    target, draft = pair.read(folder)
    tokens = [38, *torch.randint(0, 38, (36,)).tolist()]
    write_golden(folder / "golden.safetensors", golden(target, draft, tokens, [1, 2, 15, 16, 17, 36]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", type=Path)
    parser.add_argument("--tiny", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.tiny:
        write_tiny(args.tiny)
    if args.pair:
        write_pair_golden(args.pair)


if __name__ == "__main__":
    main()
