"""Every criterion on every family over several epochs, with four workers and with workers that fairseq starts."""

import pytest
from helpers import FAMILIES
from integration.test_workers import assert_same, by_fairseq, by_itself, by_torchrun, every_criterion


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("launch, workers", [(by_torchrun, 4), (by_fairseq, 2)])
def test_workers_train_the_same_model_as_one_process(launch, workers, family, data_bin, synonym_table, tmp_path):
    runs = {name: run for name, run in every_criterion(synonym_table, 30).items() if name.startswith(family)}
    assert len(runs) == 4
    alone = by_itself(tmp_path / "alone", data_bin, {n: [*run, "--update-freq", workers] for n, run in runs.items()})
    together = launch(tmp_path / "together", data_bin, runs, workers)
    for name in runs:
        assert_same(together[name], alone[name], workers)
