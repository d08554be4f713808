"""Kill binarize twenty times at random moments, with one worker and with two; print how far each run came."""

import pytest
from integration.test_preprocessing_interrupted import check_that_kills_change_nothing, command  # noqa: F401


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_twenty_kills_change_nothing(command, workers, tmp_path):  # noqa: F811
    ends = check_that_kills_change_nothing([*command, "--workers", str(workers)], tmp_path, kills=20, seed=workers)
    print(f"\n{workers} workers", *ends, sep="\n  ")
