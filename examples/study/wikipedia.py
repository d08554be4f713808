#!/usr/bin/env python3
"""Write the study's Wikipedia text: the paragraphs of SQuAD 1.1's training part.

    python examples/study/wikipedia.py train-v1.1.json --output-dir data/corpus

writes wiki.train.txt and wiki.valid.txt, a paragraph per line and a blank line after each article. Articles are sorted
by title, and every 44th is held out: 10 of 442. SQuAD is under CC BY-SA 4.0.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import read_json, write_atomically

VALID_EVERY = 44


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("squad", type=Path, metavar="FILE", help="SQuAD 1.1's train-v1.1.json")
    parser.add_argument("--output-dir", required=True, type=Path, metavar="DIR", help="folder for both files")
    args = parser.parse_args(argv)

    content = read_json(args.squad, "give SQuAD 1.1's train-v1.1.json", "utf-8-sig")
    try:
        articles = {
            article["title"]: [" ".join(paragraph["context"].split()) for paragraph in article["paragraphs"]]
            for article in content["data"]
        }
    except (AttributeError, KeyError, TypeError):
        raise InputError(f"{args.squad}: not in SQuAD's format; give SQuAD 1.1's train-v1.1.json") from None
    if len(articles) < VALID_EVERY:
        raise InputError(f"{args.squad}: has {len(articles)} articles; give SQuAD 1.1's train-v1.1.json")
    texts: dict[str, list[str]] = {"train": [], "valid": []}
    for number, title in enumerate(sorted(articles), start=1):
        texts["train" if number % VALID_EVERY else "valid"].append("\n".join(articles[title]) + "\n\n")
    for split, documents in texts.items():
        with write_atomically(args.output_dir / f"wiki.{split}.txt", "name another folder with --output-dir") as path:
            path.write_text("".join(documents), encoding="utf-8")
    for split, documents in texts.items():
        words = sum(len(document.split()) for document in documents)
        print(f"{args.output_dir / f'wiki.{split}.txt'}: {len(documents):,} articles, {words:,} words")


if __name__ == "__main__":
    main()
