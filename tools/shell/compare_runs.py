"""Prints two decode runs beside each other and judges them: with the draft, and without it.

  compare_runs.py PLAN_ID WITH.json WITHOUT.json [--distinct N] [--smoke FILE]

The files are what `kvasir decode --output json` prints. Exit 1, saying why, unless each prompt gives the same tokens in
both runs, and some drafted tokens were accepted and some rejected. --distinct: each prompt gives at least N different
tokens. --smoke: the prompt of FILE is among them, and has the answer given there.
"""

import argparse
import json
import sys


def requests_of(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)['requests']


def text_of(tokens):
    """As text where it is text, else as numbers."""
    text = bytes(t for t in tokens if t < 256).decode('utf-8', 'replace')
    return repr(text) if '\ufffd' not in text else ' '.join(str(t) for t in tokens)


def smoke_fault(path, spoken):
    """The smoke prompt's answer, to its end token, must be the known one."""
    with open(path, encoding='utf-8') as file:
        smoke = json.load(file)
    for one in spoken:
        if one['prompt_token_ids'] == smoke['prompt_tokens']:
            wrong = one['token_ids'][:len(smoke['answer_tokens'])] != smoke['answer_tokens']
            return [f"{smoke['prompt']!r}: expected {smoke['answer']!r}"] if wrong else []
    return ['the smoke prompt was not decoded']


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('plan_id')
    parser.add_argument('runs', nargs=2)
    parser.add_argument('--distinct', type=int, default=1)
    parser.add_argument('--smoke')
    args = parser.parse_args()
    plan_id, spoken, plain = args.plan_id, requests_of(args.runs[0]), requests_of(args.runs[1])
    faults = []
    if len(spoken) != len(plain) or not spoken:
        faults.append(f'{len(spoken)} answers with the draft, {len(plain)} without')
    for one, other in zip(spoken, plain):
        tokens = one['token_ids']
        prompt = text_of(one['prompt_token_ids'])
        print(f'\n  {prompt}: {len(tokens)} tokens, {len(set(tokens))} distinct')
        print(f'    {text_of(tokens)}')
        print(f"    with the draft     {one['target_steps']:3} target steps, {one['drafted_tokens']} drafted, "
              f"{one['accepted_tokens']} accepted")
        print(f"    without the draft  {other['target_steps']:3} target steps")
        if tokens != other['token_ids']:
            faults.append(f"{prompt}: without the draft the tokens are {other['token_ids']}")
        if one['error'] or other['error'] or one['plan_id'] != plan_id:
            faults.append(f"{prompt}: plan {one['plan_id']}, errors {one['error']}, {other['error']}")
        if len(set(tokens)) < args.distinct:
            faults.append(f"{prompt}: {len(set(tokens))} distinct tokens, expected {args.distinct}")
    drafted, accepted = (sum(one[key] for one in spoken) for key in ('drafted_tokens', 'accepted_tokens'))
    faults += smoke_fault(args.smoke, spoken) if args.smoke else []
    if accepted == 0:
        faults.append('no drafted token was accepted')
    if accepted == drafted:
        faults.append('no drafted token was rejected')
    if any(other['drafted_tokens'] for other in plain):
        faults.append('the run without the draft drafted')
    for fault in faults:
        print(f'demo: {fault}', file=sys.stderr)
    if not faults:
        # The first token of an answer comes from the prompt's own pass.
        after_first = sum(len(one['token_ids']) - 1 for one in spoken)
        print(f"\n  {after_first / sum(one['target_steps'] for one in spoken):.2f} tokens per target step")
        print(f'\ndemo: ok plan={plan_id} drafted={drafted} accepted={accepted} lossless=yes')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
