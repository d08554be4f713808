"""One worker of a test's torchrun launch: fairseq-train with the flags that join it to the others."""

import os
import sys

from fairseq_cli.train import cli_main

sys.argv += ["--distributed-init-method", "env://", "--distributed-world-size", os.environ["WORLD_SIZE"]]
sys.argv += ["--distributed-rank", os.environ["RANK"], "--distributed-no-spawn"]
sys.argv += ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
cli_main()
