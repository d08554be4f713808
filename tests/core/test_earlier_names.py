"""The names that commands had until version 0.2.0."""

import pytest

from tn_fairseq.core.earlier_names import renamed


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        ("python -m tn_fairseq.preprocessing binarize --train a", "tn-fairseq data binarize --train a"),
        ("python -m tn_fairseq.preprocessing train-tokenizer", "tn-fairseq data train-tokenizer"),
        ("python -m tn_fairseq.preprocessing glue --task RTE", "tn-fairseq data glue --task RTE"),
        ("python -m tn_fairseq.preprocessing squad", "tn-fairseq data squad"),
        ("python -m tn_fairseq.preprocessing twins --data a", "tn-fairseq data twins --data a"),
        ("python -m tn_fairseq.preprocessing build-synonym-table --dict d", "tn-fairseq synonyms build --dict d"),
        ("python -m tn_fairseq.preprocessing swap-synonyms", "tn-fairseq evaluate swap-synonyms"),
        ("python -m tn_fairseq.preprocessing add-distractors", "tn-fairseq evaluate add-distractors"),
        ("python -m tn_fairseq.analysis data-bin --path 'a*.pt'", "tn-fairseq look analysis data-bin --path 'a*.pt'"),
        ("python -m tn_fairseq.evaluation glue a.pt", "tn-fairseq evaluate glue a.pt"),
        ("python -m tn_fairseq.evaluation robustness a", "tn-fairseq evaluate robustness a"),
        ("python -m tn_fairseq.huggingface import a", "tn-fairseq exchange import a"),
        ("python -m tn_fairseq.huggingface export a.pt", "tn-fairseq exchange export a.pt"),
        ("python -m tn_fairseq.synonyms.fetch_wordnet && ls", "tn-fairseq synonyms fetch-wordnet && ls"),
        (
            """sh -c 'fairseq-train a --user-dir "$(python -m tn_fairseq)" && python -m tn_fairseq.analysis a'""",
            """sh -c 'fairseq-train a --user-dir "$(tn-fairseq user-dir)" && tn-fairseq look analysis a'""",
        ),
        ("python -m tn_fairseq_more.analysis", "python -m tn_fairseq_more.analysis"),
        ("python -m tn_fairseq.analysis_of_mine", "python -m tn_fairseq.analysis_of_mine"),
        ("fairseq-train data-bin --seed 1", "fairseq-train data-bin --seed 1"),
    ],
)
def test_commands_of_earlier_versions_have_names_of_now(earlier, now):
    assert renamed(earlier) == now and renamed(now) == now
