"""Finished runs on SQuAD without the training: random models in folders of the command; and attacked questions."""

import json
import random
from functools import partial
from pathlib import Path

from helpers import WORDS, save_random_model

from tn_fairseq.core.configuration import training_config
from tn_fairseq.tools import jobs
from tn_fairseq.tools.evaluate.finetune_options import FineTuningOptions
from tn_fairseq.tools.evaluate.finetune_squad import SQUAD, score_squad
from tn_fairseq.tools.evaluate.finetuning import CHECKPOINT, Pretrained, fine_tuning_jobs
from tn_fairseq.tools.formats.squad_json import SquadExample, squad_json
from tn_fairseq.tools.jobs import Job


def random_questions(count: int, seed: int) -> list[SquadExample]:
    """Questions about two contexts in three; every third context is long."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        if number % 3 != 1:
            words = rng.sample(WORDS, rng.randint(3, 6) if number % 3 == 0 else rng.randint(20, 40))
        context = " ".join(words)
        golds = tuple((word, context.index(word)) for word in (*words[:2], *words[4:5]))
        found.append(SquadExample(f"q{number}", f"{rng.choice(WORDS)} ?", context, golds))
    return found


def write_run(output: Path, data: Path, name: str, seed: int = 1) -> Job:
    """Write a finished run with its checkpoint, and the scores and predictions of the data's splits."""
    options = FineTuningOptions(
        checkpoints=[], data=data, output=output, seeds=[seed], max_update=8, keep_checkpoints=True
    )
    model = Pretrained(name, Path(f"{name}.pt"), name, ("--arch", "bert_tiny"), 2, 128)
    flags, score = ["--task", "squad", "--criterion", "squad"], partial(score_squad, data)
    (job,) = fine_tuning_jobs(options, [model], SQUAD, data, flags, 64, 2, score)
    weights = random.Random(f"{name} {seed}").randrange(1 << 30)
    save_random_model(job.output.parent / CHECKPOINT, training_config(job.run[1:]), weights)
    job.marker.write_text(json.dumps({"state": "ran", "fingerprint": job.fingerprint, "seconds": 0}))
    assert jobs.run([job], output) == []
    return job


def write_squad(path: Path, examples: list[SquadExample], **more: object) -> Path:
    path.write_text(json.dumps(squad_json(examples) | more))
    return path


def with_distractors(examples: list[SquadExample]) -> list[SquadExample]:
    """The examples with their question as another sentence of the context."""
    return [
        SquadExample(one.id, one.question, f"{one.context} {one.question.rstrip(' ?')}", one.answers)
        for one in examples
    ]
