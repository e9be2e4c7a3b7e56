"""Prints pairs of the built-in corpus: python -m nmt.grammar --pairs 5."""

from __future__ import annotations

import argparse

from nmt.grammar import draw


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m nmt.grammar", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="how many pairs")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--seed", type=int, default=1, help="seed of the corpus")
    parser.add_argument("--split", default="train", help="train, valid or test")
    parser.add_argument("--mean-length", type=float, default=22.0, help="mean source words")
    parser.add_argument("--alignment", action="store_true", help="print the links too")
    args = parser.parse_args()
    for k in range(args.first, args.first + args.pairs):
        pair = draw(args.seed, args.split, k, mean_length=args.mean_length)
        print(" ".join(pair.source))
        print(" ".join(pair.target))
        if args.alignment:
            print(pair.pharaoh())
        print()


if __name__ == "__main__":
    main()
