"""Twenty kills of binarize.py at random moments, on one worker and on two; prints how far each had come."""

import pytest
from helpers import run_command
from integration.test_preprocessing_interrupted import command, kill_at_random  # noqa: F401
from test_binarization import contents


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_twenty_kills_change_nothing(command, workers, tmp_path):  # noqa: F811
    command += ["--workers", str(workers)]
    ends = kill_at_random(command, tmp_path / "killed", kills=20, seed=workers)
    print(f"\n{workers} workers", *ends, sep="\n  ")
    for name in ("killed", "whole"):
        run = run_command(*command, "--destdir", tmp_path / name)
        assert run.code == 0, run.output
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
