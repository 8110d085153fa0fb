"""Prints two decode runs beside each other and judges them: with the draft, and without it.

  compare_runs.py PLAN_ID WITH.json WITHOUT.json

The files are what `kvasir decode --output json` prints. Exit 1, saying why, unless each prompt gives the same tokens in
both runs and at least 16 distinct ones, and some drafted tokens were accepted and some rejected.
"""

import json
import sys

DISTINCT_MIN = 16


def requests_of(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)['requests']


def main():
    plan_id, spoken, plain = sys.argv[1], requests_of(sys.argv[2]), requests_of(sys.argv[3])
    faults = []
    if len(spoken) != len(plain) or not spoken:
        faults.append(f'{len(spoken)} answers with the draft, {len(plain)} without')
    for one, other in zip(spoken, plain):
        tokens = one['token_ids']
        prompt = bytes(t for t in one['prompt_token_ids'] if t < 256).decode('utf-8', 'replace')
        print(f'\n  {prompt!r}: {len(tokens)} tokens, {len(set(tokens))} distinct')
        print('    ' + ' '.join(str(t) for t in tokens))
        print(f"    with the draft     {one['target_steps']:3} target steps, {one['drafted_tokens']} drafted, "
              f"{one['accepted_tokens']} accepted")
        print(f"    without the draft  {other['target_steps']:3} target steps")
        if tokens != other['token_ids']:
            faults.append(f"{prompt!r}: without the draft the tokens are {other['token_ids']}")
        if one['error'] or other['error'] or one['plan_id'] != plan_id:
            faults.append(f"{prompt!r}: plan {one['plan_id']}, errors {one['error']}, {other['error']}")
        if len(set(tokens)) < DISTINCT_MIN:
            faults.append(f"{prompt!r}: {len(set(tokens))} distinct tokens, expected {DISTINCT_MIN}")
    drafted, accepted = (sum(one[key] for one in spoken) for key in ('drafted_tokens', 'accepted_tokens'))
    if accepted == 0:
        faults.append('no drafted token was accepted')
    if accepted == drafted:
        faults.append('no drafted token was rejected')
    if any(other['drafted_tokens'] for other in plain):
        faults.append('the run without the draft drafted')
    for fault in faults:
        print(f'demo: {fault}', file=sys.stderr)
    if not faults:
        print(f'\ndemo: ok plan={plan_id} drafted={drafted} accepted={accepted} lossless=yes')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
