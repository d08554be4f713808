import os
import platform
import subprocess
import sys

import pytest

PAGES = """
import resource
import torch
from tn_fairseq.modules.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        [torch.ones(3_000_000) for _ in range(10)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="for glibc only")
def test_freed_pages_are_reused():
    # make glibc return as much memory as it can until keep_freed_memory is called
    settings = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    run = subprocess.run(
        [sys.executable, "-c", PAGES], capture_output=True, text=True, check=True, env=os.environ | settings
    )
    before, after = map(int, run.stdout.split())
    assert before > 10_000 and after < before / 10
