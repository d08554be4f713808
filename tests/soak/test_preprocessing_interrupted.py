"""Twenty kills of binarize.py at random moments, on one worker and on two; prints how far each had come."""

import pytest
from integration.test_preprocessing_interrupted import check_that_kills_change_nothing, command  # noqa: F401


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_twenty_kills_change_nothing(command, workers, tmp_path):  # noqa: F811
    ends = check_that_kills_change_nothing([*command, "--workers", str(workers)], tmp_path, kills=20, seed=workers)
    print(f"\n{workers} workers", *ends, sep="\n  ")
