"""Measures the pair on held-out prompts: right answers, and tokens emitted per step of the target.

    python tools/pair/evaluate.py --pair tests/data/pair --prompts 600
    python tools/pair/evaluate.py --training RUN/target.pt RUN/draft.pt

Greedy speculative decoding emits the target's own greedy text, whatever is drafted. So the text is decoded once without
a draft; the block of every possible anchor is drafted beside it; and the steps are then walked: a step whose anchor is
text[j] accepts the longest prefix of its block that equals text[j+1:], and emits one token more. `--literal` decodes
some prompts step by step with rollback instead and demands the same steps.
The first token of an answer comes from the prompt's own pass, which is no step. Tokens after EOS do not count.
"""

import argparse
import itertools
from collections import defaultdict
from pathlib import Path

import torch
from torch import Tensor

import pair
import text
from draft import Draft
from target import Target

SEED, LONGEST = 3, 96  # tokens of an answer, at most


def greedy(target: Target, prompts: Tensor) -> list[list[int]]:
    """Continues prompts of one length [batch, tokens], each until EOS or LONGEST tokens."""
    logits, states, _ = target(prompts)
    answers = [logits[:, -1].argmax(-1)]
    done = answers[0] == text.EOS
    while len(answers) < LONGEST and not done.all():
        logits, states, _ = target(answers[-1][:, None], states)
        answers.append(logits[:, -1].argmax(-1))
        done |= answers[-1] == text.EOS
    rows = torch.stack(answers, dim=1).tolist()
    return [row[: row.index(text.EOS) + 1] if text.EOS in row else row for row in rows]


def drafted_beside(target: Target, draft: Draft, tokens: list[int], start: int) -> Tensor:
    """What is drafted after each anchor tokens[start], tokens[start + 1], ...: [anchors, N]."""
    whole = torch.tensor([tokens])
    _, _, taps = target(whole, taps=tuple(draft.config["target_layer_ids"]))
    at = torch.arange(start, len(tokens))[None]
    hidden = draft.block_hidden(draft.context_rows(taps), whole[:, start:], at)
    return draft.chain(draft.base_logits(hidden), whole[:, start:])[0]


def accepted_in(block: list[int], wanted: list[int]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(block, wanted)))


def steps_of(answer: list[int], blocks: list[list[int]]) -> list[int]:
    """Tokens that each step emits; blocks[j] was drafted after the anchor answer[j]."""
    emitted, j = [], 0
    while j + 1 < len(answer):
        count = min(accepted_in(blocks[j], answer[j + 1 :]) + 1, len(answer) - 1 - j)
        emitted.append(count)
        j += count
    return emitted


def literal_steps(target: Target, draft: Draft, prompt: list[int]) -> tuple[list[int], list[int]]:
    """The answer and the tokens of each step, by drafting, verifying and rolling back for real."""
    ids = tuple(draft.config["target_layer_ids"])
    logits, states, taps = target(torch.tensor([prompt]), taps=ids)
    context, answer, steps = draft.context_rows(taps), [int(logits[0, -1].argmax())], []
    while answer[-1] != text.EOS and len(answer) < LONGEST:
        position = len(prompt) + len(answer) - 1
        anchor = torch.tensor([[answer[-1]]])
        hidden = draft.block_hidden(context, anchor, torch.tensor([[position]]))
        block = draft.chain(draft.base_logits(hidden), anchor)[0, 0].tolist()
        verified, _, _ = target(torch.tensor([[answer[-1], *block]]), states)
        chosen = verified[0].argmax(-1).tolist()
        count = accepted_in(block, chosen) + 1
        kept = [answer[-1], *block[: count - 1]]
        _, states, taps = target(torch.tensor([kept]), states, taps=ids)  # the states after the accepted rows alone
        context = [torch.cat(rows, dim=1) for rows in zip(context, draft.context_rows(taps, position), strict=True)]
        fresh = chosen[:count]
        fresh = fresh[: fresh.index(text.EOS) + 1] if text.EOS in fresh else fresh
        fresh = fresh[: LONGEST - len(answer)]
        answer += fresh
        steps.append(len(fresh))
    return answer, steps


@torch.no_grad()
def measure(target: Target, draft: Draft, count: int, literal: int) -> dict:
    documents = list(itertools.islice(text.documents(SEED, held_out=True), count))
    by_length = defaultdict(list)
    for document in documents:
        by_length[len(document.prompt_tokens())].append(document)
    kinds = defaultdict(lambda: {"prompts": 0, "right": 0, "tokens": 0, "steps": 0})
    positions = [0] * (draft.block + 1)
    for same in by_length.values():
        answers = greedy(target, torch.tensor([document.prompt_tokens() for document in same]))
        for document, answer in zip(same, answers, strict=True):
            prompt = document.prompt_tokens()
            steps = steps_of(answer, drafted_beside(target, draft, prompt + answer, len(prompt)).tolist())
            if literal > 0:
                literal -= 1
                if literal_steps(target, draft, prompt) != (answer, steps):
                    raise SystemExit(f"walked and literal steps differ: {document.question}")
            kind = kinds[document.kind]
            kind["prompts"] += 1
            kind["right"] += answer == document.answer_tokens()
            kind["tokens"] += sum(steps)
            kind["steps"] += len(steps)
            for emitted in steps:
                positions[emitted - 1] += 1
    return {"kinds": dict(sorted(kinds.items())), "emitted": positions}


def report(result: dict) -> str:
    lines = ["| kind | prompts | right | tokens | steps | tokens per step |", "|---|---:|---:|---:|---:|---:|"]
    total = {key: sum(kind[key] for kind in result["kinds"].values()) for key in ("prompts", "right", "tokens", "steps")}
    for name, kind in [*result["kinds"].items(), ("all", total)]:
        lines.append(f"| {name} | {kind['prompts']} | {kind['right']} | {kind['tokens']} | {kind['steps']} | "
                     f"{kind['tokens'] / max(kind['steps'], 1):.2f} |")
    lines.append("")
    lines.append("steps that emitted 1, 2, ... tokens: " + ", ".join(map(str, result["emitted"])))
    whole = total["tokens"] + total["prompts"]
    lines.append(f"with the prompt's pass as a step and its token: {whole / (total['steps'] + total['prompts']):.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", type=Path)
    parser.add_argument("--training", type=Path, nargs="+", help="target state, then draft state")
    parser.add_argument("--prompts", type=int, default=600)
    parser.add_argument("--literal", type=int, default=8)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.training:
        target, draft = pair.from_training(args.training[0], args.training[1] if len(args.training) > 1 else None)
    else:
        target, draft = pair.read(args.pair)
    print(report(measure(target, draft, args.prompts, args.literal)))


if __name__ == "__main__":
    main()
