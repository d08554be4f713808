"""Let a teacher read the training text once, and store what it says about the masked words.

    tn-fairseq data teach data-bin --teacher teacher.pt --output draws

    fairseq-train data-bin --user-dir tn_fairseq --task electra --criterion mlm_distillation \\
        --distillation-draws draws ...

Masks each block of the training text, reads it with the teacher, and draws words from its distribution at each masked
position. Training with --distillation-draws then needs no teacher. The options of --task electra below decide blocks
and masks, and must be the same in training. The draws do not depend on the batches, their order, or the workers.

Several processes can share the work: start each with --shard, or all with torchrun -m tn_fairseq data teach. After an
interruption, the same command continues.
"""

import logging
import os

from ..core.errors import if_interrupted
from ..tools.preprocessing.teach_options import TeachOptions
from .arguments import command_line


def launched() -> tuple[int, int]:
    """The part of this process, and the number of processes that torchrun started."""
    return int(os.environ.get("RANK", 0)) + 1, int(os.environ.get("WORLD_SIZE", 1))


def teach(options: TeachOptions) -> None:
    """Write the draws, and print what the teacher knows about the text."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing import teaching

    with if_interrupted("run the same command again to continue"):
        print(teaching.teach(options, options.shard or launched()))


main = command_line("data teach", __doc__, teach)
