"""The synonym table V of hard correction.

``wordnet`` and ``vectors`` are the sources: they know words. ``vocabulary`` says which entries of a dictionary are
whole words. ``table`` turns words into ids and is the only module that training needs.
"""
