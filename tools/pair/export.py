"""Writes the two checkpoints of a trained pair, in bf16, from training states.

    python tools/pair/export.py --target RUN/target.pt --draft RUN/draft.pt --out tests/data/pair
"""

import argparse
from pathlib import Path

import pair


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    pair.write(args.out, *pair.from_training(args.target, args.draft))


if __name__ == "__main__":
    main()
