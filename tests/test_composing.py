"""The configuration that the tests compose quickly is the one that Hydra composes."""

from composing import fast
from fairseq.dataclass import utils
from helpers import FAMILIES
from hydra import compose

from tn_fairseq.core.configuration import training_config

FLAGS = ["data-bin", *FAMILIES["electra"].split(), "--criterion", "electra", "--optimizer", "electra_adamw"]
OTHERS = [
    ["--lr", "0.1,0.2", "--update-freq", "4", "--fp16", "--max-update", "9", "--save-dir", "it's, a {path} [1]=(2)"],
    ["--restore-file", "", "--adam-betas", "(0.5, 0.6)", "--adam-bias-correction", "--seed", "5", "--dropout", "0"],
    ["--synonym-table", "null", "--mask-whole-words", "--valid-subset", "train,valid", "--clip-norm", "1e-3"],
]


def test_it_composes_what_hydra_composes(monkeypatch):
    """From any other values to these, and for other choices."""
    composed = []

    def counted(*words: object, **named: object):
        composed.append(words)
        return compose(*words, **named)

    every = [FLAGS, *([*FLAGS, *more] for more in OTHERS), [*FLAGS, "--criterion", "mlm_soft_reg"]]
    monkeypatch.setattr(utils, "compose", compose)
    expected = [training_config(flags) for flags in every]
    assert len(set(map(str, expected))) == len(every)
    monkeypatch.setattr(utils, "compose", fast(counted))
    for number in (0, 1, 2, 3, 4, 2, 1, 3, 0, 4):
        assert str(training_config(every[number])) == str(expected[number])
    assert len(composed) == 2
