"""The synonym table V of hard correction.

``wordnet``, ``vectors`` and ``embeddings`` are sources of synonyms, which ``combining`` combines and filters;
``inflection`` and ``contrasts`` tell how two words relate. ``vocabulary`` finds the whole words of a dictionary.
``table`` converts words to ids and is the only module that training needs.
"""
