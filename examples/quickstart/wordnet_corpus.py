#!/usr/bin/env python3
"""Write the quickstart's corpus: the glosses and example sentences of WordNet as plain text.

    python examples/quickstart/wordnet_corpus.py --output-dir quickstart/corpus

writes train.txt and valid.txt. Each synset is one line with its words, its definition and its example sentences.
Related synsets form a document, and a blank line separates documents. Every 50th document is held out for validation.
The same WordNet gives the same files: WordNet 3.0 gives 13,875 documents, 117,659 lines and 1.9 million words.
"""

import argparse
import re
from itertools import islice
from pathlib import Path
from typing import Iterable, Iterator, Optional, Sequence

from nltk.corpus.reader.wordnet import Synset
from tqdm import tqdm

from tn_fairseq.commands.arguments import positive
from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import write_atomically
from tn_fairseq.synonyms.wordnet import ensure_wordnet

LINES_PER_DOCUMENT = 24  # maximum; about 400 words
VALID_EVERY = 50

# Lines look like "A, b or c is ...", "To a, b or c is to ..." or "A, b or c means ...".
TEMPLATES = {"n": "{words} is {definition}", "v": "To {words} is to {definition}"}
OTHER_TEMPLATE = "{words} means {definition}"


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output-dir", required=True, type=Path, metavar="DIR", help="folder for train.txt and valid.txt"
    )
    parser.add_argument("--share", type=positive, default=1, metavar="N", help="write every Nth document of train.txt")
    args = parser.parse_args(argv)
    folder = args.output_dir

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; name another folder with --output-dir") from None
    reader = ensure_wordnet()
    synsets = list(tqdm(reader.all_synsets(), desc="Reading WordNet", unit=" synsets", leave=False, disable=None))
    texts = [[line_of(synset) for synset in document] for document in documents(synsets)]
    held_out = VALID_EVERY // 2
    splits = {
        "train": [text for number, text in enumerate(texts) if number % VALID_EVERY != held_out][:: args.share],
        "valid": [text for number, text in enumerate(texts) if number % VALID_EVERY == held_out],
    }
    for split, split_texts in splits.items():
        write(folder / f"{split}.txt", split_texts)
    for split, split_texts in splits.items():
        lines = [line for text in split_texts for line in text]
        words = sum(len(line.split()) for line in lines)
        print(f"{folder / split}.txt: {len(split_texts):,} documents, {len(lines):,} lines, {words:,} words")


def documents(synsets: Iterable[Synset]) -> Iterator[list[Synset]]:
    """Group each synset into one document of at most ``LINES_PER_DOCUMENT`` related synsets.

    Nouns and verbs follow the hypernym tree. A subtree that fits is one document. For a larger one, the root and its
    leaf children come first, followed by the subtree of each other child. Adjectives and adverbs have no such tree;
    WordNet's order keeps their clusters together.
    """
    synsets = list(synsets)
    children: dict[Synset, list[Synset]] = {}
    roots, flat = [], []
    for synset in synsets:
        # NLTK returns hypernyms in the order of a set; take the first in WordNet's order.
        parent = min(synset.hypernyms() + synset.instance_hypernyms(), key=Synset.offset, default=None)
        if parent is not None:
            children.setdefault(parent, []).append(synset)
        elif synset.pos() in "nv":
            roots.append(synset)
        else:
            flat.append(synset)

    placed: set[Synset] = set()
    # Some verbs are hypernyms of each other, so no root leads to them. Start from these verbs as well.
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
    """``root`` and the synsets below it that are not in a document yet, parents first."""
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
    """A synset as a line of plain text: its words and their definition, then its example sentences."""
    words = [name.replace("_", " ") for name in synset.lemma_names()]
    words = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    template = TEMPLATES.get(synset.pos(), OTHER_TEMPLATE)
    text = template.format(words=words, definition=clean_definition(synset.definition()).removeprefix("to "))
    examples = filter(None, map(clean, synset.examples()))  # a few are only a semicolon
    return " ".join(map(sentence, (text, *examples)))


def clean_definition(definition: str) -> str:
    """A definition without its leading label, such as "(physics) ...", and without remains of quotations.

    NLTK removes all text in quotation marks. It leaves semicolons, the author of a quotation ("- George Santayana"),
    half a quotation if the marks do not match, and a gap for each quoted word.
    """
    parts = [re.sub(r"^(\([^()]*\)\s*)+", "", part.strip()) for part in definition.split(";")]
    kept = [
        part
        for part in parts
        if len(part) > 2 and not part.startswith("-") and not re.search(r'"|\s\s|\(\s*\)|\s\)', part) and part != "and"
    ]
    return clean("; ".join(kept or [definition]))


def clean(text: str) -> str:
    """``text`` with single spaces, `quoted' as "quoted", and without underscores, double hyphens or stray marks."""
    text = re.sub(r"`(.+?)'(?!\w)", r'"\1"', text.replace("_", " "))
    text = re.sub(r"\s*--+\s*", " - ", text.replace("`", "'"))
    text = re.sub(r"\s*\.\.+\s*", " ... ", text)
    return " ".join(text.split()).strip(" ;:").lstrip(". ")


def sentence(text: str) -> str:
    """``text`` with a capital letter at the start and a period at the end, unless it ends with another mark."""
    return text[:1].upper() + text[1:] + ("" if text.rstrip("\"')").endswith((".", "!", "?")) else ".")


def write(path: Path, texts: Iterable[Iterable[str]]) -> None:
    """Write documents with blank lines between them; the file is complete or does not exist."""
    with write_atomically(path, "name another folder with --output-dir") as temporary:
        temporary.write_text("\n\n".join("\n".join(text) for text in texts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
