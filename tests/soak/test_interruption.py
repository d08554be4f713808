"""Kill a run of each criterion twenty times at random moments; print where each attempt ended."""

import pytest
from helpers import CRITERIA, FAMILIES
from interruption import check_that_kills_change_nothing


@pytest.mark.soak
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", ["electra", "bert"])
def test_twenty_kills_change_nothing(family, criterion, data_bin, synonym_table, tmp_path):
    flags = [*FAMILIES[family].split(), "--criterion", criterion, "--synonym-table", synonym_table]
    attempts = check_that_kills_change_nothing(data_bin, tmp_path, flags, kills=20, seed=len(criterion))
    print(f"\n{family} {criterion}: resumed from updates {attempts.resumed}")
    print("\n".join(f"  {end}" for end in attempts.ends))
