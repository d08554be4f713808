"""Words of a text as symbols of the model's dictionary."""

from collections.abc import Callable, Mapping


def word_finder(words: Mapping[int, str]) -> Callable[[str], int | None]:
    """A function that gives the id of a word, or None if it is not one whole-word symbol.

    ``words`` are the dictionary's whole words (``whole_words``). If all are lower-case, so is what is looked up.
    """
    ids = {word: index for index, word in words.items()}
    is_uncased = all(word == word.lower() for word in ids)
    return lambda word: ids.get(word.lower() if is_uncased else word)


def is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode; JSON can hold half a surrogate pair, which no tokenizer accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
