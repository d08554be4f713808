"""The names that commands had until version 0.2.0."""

import pytest

from tn_fairseq.core.earlier_names import renamed


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        ("preprocessing binarize", "tn-fairseq data binarize"),
        ("preprocessing", "tn-fairseq data"),
        ("preprocessing build-synonym-table", "tn-fairseq synonyms build"),
        ("preprocessing swap-synonyms", "tn-fairseq evaluate swap-synonyms"),
        ("analysis data-bin", "tn-fairseq look analysis data-bin"),
        ("evaluation glue", "tn-fairseq evaluate glue"),
        ("huggingface import", "tn-fairseq exchange import"),
        ("synonyms.fetch_wordnet", "tn-fairseq synonyms fetch-wordnet"),
        ("analysis_of_mine", None),
        ("commands.study", None),
    ],
)
def test_commands_of_earlier_versions_have_names_of_now(earlier, now):
    assert renamed(*earlier.split()) == now
