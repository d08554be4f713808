#!/usr/bin/env python3
"""Write the quickstart's corpus: WordNet's own glosses and example sentences as running text.

    python examples/quickstart/wordnet_corpus.py --output-dir quickstart/corpus

writes train.txt and valid.txt: one line per synset, with its words, its definition and its example sentences, in
documents of related synsets with a blank line between them. Every 50th document is held out for validation. The same
WordNet gives the same files: WordNet 3.0 gives 13,875 documents, 117,659 lines and 1.9 million words.
"""

import argparse
import os
import re
from itertools import islice
from pathlib import Path
from typing import Iterable, Iterator, Optional, Sequence

from nltk.corpus.reader.wordnet import Synset
from tqdm import tqdm

from tn_fairseq.errors import InputError, one_line_errors
from tn_fairseq.synonyms.wordnet import ensure_wordnet

LINES_PER_DOCUMENT = 24  # at most: about 400 words
VALID_EVERY = 50

# How a definition is introduced: "A, b or c is ...", "To a, b or c is to ...", "A, b or c means ...".
TEMPLATES = {"n": "{words} is {definition}", "v": "To {words} is to {definition}"}
OTHER_TEMPLATE = "{words} means {definition}"


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output-dir", required=True, type=Path, metavar="DIR", help="folder of train.txt and valid.txt"
    )
    folder = parser.parse_args(argv).output_dir

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; name another folder with --output-dir") from None
    reader = ensure_wordnet()
    synsets = list(tqdm(reader.all_synsets(), desc="Reading WordNet", unit=" synsets", leave=False, disable=None))
    texts = [[line_of(synset) for synset in document] for document in documents(synsets)]
    held_out = VALID_EVERY // 2
    splits = {
        "train": [text for number, text in enumerate(texts) if number % VALID_EVERY != held_out],
        "valid": [text for number, text in enumerate(texts) if number % VALID_EVERY == held_out],
    }
    try:
        for split, split_texts in splits.items():
            write(folder / f"{split}.txt", split_texts)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; name another folder with --output-dir") from None
    for split, split_texts in splits.items():
        lines = [line for text in split_texts for line in text]
        words = sum(len(line.split()) for line in lines)
        print(f"{folder / split}.txt: {len(split_texts):,} documents, {len(lines):,} lines, {words:,} words")


def documents(synsets: Iterable[Synset]) -> Iterator[list[Synset]]:
    """Group synsets into documents of at most ``LINES_PER_DOCUMENT`` related ones, each synset once.

    Nouns and verbs follow the hypernym tree: a subtree that fits is one document; of a larger one, the root and its
    children without children of their own come first, then each other child's subtree. Adjectives and adverbs have no
    such tree; WordNet's own order keeps their clusters together.
    """
    synsets = list(synsets)
    children: dict[Synset, list[Synset]] = {}
    roots, flat = [], []
    for synset in synsets:
        # NLTK gives hypernyms in the order of a set: take the first in WordNet's.
        parent = min(synset.hypernyms() + synset.instance_hypernyms(), key=Synset.offset, default=None)
        if parent is not None:
            children.setdefault(parent, []).append(synset)
        elif synset.pos() in "nv":
            roots.append(synset)
        else:
            flat.append(synset)

    placed: set[Synset] = set()
    # Of WordNet's verbs, some are hypernyms of each other: no root leads there, so they serve as roots themselves.
    for root in (*roots, *(synset for synset in synsets if synset.pos() in "nv")):
        if root not in placed:
            for document in _tree_documents(root, children, placed):
                yield from _chunks(document)
    yield from _chunks(flat)


def _tree_documents(root: Synset, children: dict[Synset, list[Synset]], placed: set[Synset]) -> Iterator[list[Synset]]:
    subtree = _subtree(root, children, placed)
    if len(subtree) <= LINES_PER_DOCUMENT:
        placed.update(subtree)
        yield subtree
        return
    inner = [child for child in children[root] if child in children and child not in placed]
    document = [root] + [child for child in children[root] if child not in children and child not in placed]
    placed.update(document)
    yield document
    for child in inner:
        if child not in placed:
            yield from _tree_documents(child, children, placed)


def _subtree(root: Synset, children: dict[Synset, list[Synset]], placed: set[Synset]) -> list[Synset]:
    """``root`` and all below it that no document has yet, parents first."""
    found = {}
    stack = [root]
    while stack:
        synset = stack.pop()
        if synset not in found and synset not in placed:
            found[synset] = None
            stack.extend(reversed(children.get(synset, [])))
    return list(found)


def _chunks(document: list[Synset]) -> Iterator[list[Synset]]:
    remaining = iter(document)
    while chunk := list(islice(remaining, LINES_PER_DOCUMENT)):
        yield chunk


def line_of(synset: Synset) -> str:
    """A synset as a line of running text: its words and their definition, then its example sentences."""
    words = [name.replace("_", " ") for name in synset.lemma_names()]
    words = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    template = TEMPLATES.get(synset.pos(), OTHER_TEMPLATE)
    text = template.format(words=words, definition=clean_definition(synset.definition()).removeprefix("to "))
    examples = filter(None, map(clean, synset.examples()))  # a few are nothing but a semicolon
    return " ".join(map(sentence, (text, *examples)))


def clean_definition(definition: str) -> str:
    """A definition without the label in front ("(physics) ...") and without what NLTK leaves of quotations in it.

    NLTK cuts out everything in quotation marks. What stays are the semicolons, the quotation's author ("- George
    Santayana"), half a quotation where the marks do not match, and gaps where a single word was quoted.
    """
    parts = [re.sub(r"^(\([^()]*\)\s*)+", "", part.strip()) for part in definition.split(";")]
    kept = [
        part
        for part in parts
        if len(part) > 2 and not part.startswith("-") and not re.search(r'"|\s\s|\(\s*\)|\s\)', part) and part != "and"
    ]
    return clean("; ".join(kept or [definition]))


def clean(text: str) -> str:
    """``text`` with single blanks, `quoted' turned into "quoted", and no underscores, double hyphens or stray marks."""
    text = re.sub(r"`(.+?)'(?!\w)", r'"\1"', text.replace("_", " "))
    text = re.sub(r"\s*--+\s*", " - ", text.replace("`", "'"))
    text = re.sub(r"\s*\.\.+\s*", " ... ", text)
    return " ".join(text.split()).strip(" ;:").lstrip(". ")


def sentence(text: str) -> str:
    """``text`` with a capital in front and a full stop at the end, unless it ends in another mark."""
    return text[:1].upper() + text[1:] + ("" if text.rstrip("\"')").endswith((".", "!", "?")) else ".")


def write(path: Path, texts: Iterable[Iterable[str]]) -> None:
    """Write documents with a blank line between them; the file appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text("\n\n".join("\n".join(text) for text in texts) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
