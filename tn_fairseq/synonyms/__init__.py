"""The synonyms in the synonym table V of hard correction.

``sources`` names where synonyms come from: ``wordnet``, ``lists``, and ``vectors`` and ``embeddings``, whose
``neighbors`` are synonyms. ``rows`` converts words to ids, combines sources and filters pairs; ``inflection``
and ``contrasts`` tell how two words relate. ``swords`` and ``acceptance`` compare tables with the judgments of people.
"""
