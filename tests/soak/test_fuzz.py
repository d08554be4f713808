"""Damage a good file of every kind ten thousand times; print how many could be read, and the errors of the others."""

import random
import re
from collections import Counter

import pytest
from fuzzing import check_reads_or_refuses, kinds, mutate, peak_memory

DAMAGES = 10_000


@pytest.mark.soak
def test_ten_thousand_damaged_files_of_every_kind(tmp_path, caplog):
    caplog.set_level("CRITICAL")
    for name, kind in kinds(tmp_path).items():
        good, before = kind.path.read_bytes(), peak_memory()
        rng = random.Random(name)
        said = Counter()
        for number in range(DAMAGES):
            content = mutate(good, rng)
            try:
                found = check_reads_or_refuses(kind, content)
            except BaseException:
                print(f"{name}, damage {number}: {content[:2000]!r}")
                raise
            said[re.sub(r"\d+|'.*?'|\(.*?\)", "…", found.replace(str(kind.path), "FILE"))[:100]] += 1
        kind.path.write_bytes(good)
        grown = (peak_memory() - before) / 1e6
        print(f"\n{name}: {DAMAGES:,} damaged files, {said.pop('read', 0):,} read; memory grew by {grown:.0f} MB")
        for message, count in said.most_common(8):
            print(f"  {count:6,}  {message}")
        assert grown < 200
