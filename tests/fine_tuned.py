"""Finished fine-tuning runs without the training: random models in the folders of the commands glue and squad.

Also the data before and after attacks.
"""

import json
import random
from pathlib import Path

from helpers import WORDS, save_random_model

from tn_fairseq.core.configuration import training_config
from tn_fairseq.tools.evaluation import glue, squad
from tn_fairseq.tools.evaluation.finetuning import SETTINGS, FineTuningOptions, Pretrained, Run
from tn_fairseq.tools.formats.glue import TASKS
from tn_fairseq.tools.formats.squad import SquadExample, squad_json

LABELS = {"SST-2": ("1", "0"), "MNLI": ("neutral", "contradiction", "entailment")}
COLUMNS = {"SST-2": ("sentence", "label"), "MNLI": ("sentence1", "sentence2", "gold_label")}


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


def write_run(output: Path, data: Path, name: str, task: str = "SQuAD", seed: int = 1) -> Run:
    """Write a finished run with its checkpoint, and the scores and predictions of the data's splits."""
    options = FineTuningOptions(["model.pt"], data, output, seeds=[seed], max_update=8)
    model = Pretrained(name, Path(f"{name}.pt"), name, ("--arch", "bert_tiny"), 2, 128)
    if task == "SQuAD":
        (run,), score = squad.squad_runs(options, [model]), squad.score
    else:
        (run,), score = glue.glue_runs(options, [model], TASKS[task]), glue.score
    save_random_model(run.checkpoint, training_config(run.flags), random.Random(f"{name} {seed}").randrange(1 << 30))
    run.write(SETTINGS, {"checkpoint": model.digest, "flags": run.flags})
    run.finish(score(run), keep_checkpoints=True)
    return run


def write_squad(path: Path, examples: list[SquadExample], **more: object) -> Path:
    path.write_text(json.dumps(squad_json(examples) | more))
    return path


def with_distractors(examples: list[SquadExample]) -> list[SquadExample]:
    """The examples with their question as another sentence of the context."""
    return [
        SquadExample(one.id, one.question, f"{one.context} {one.question.rstrip(' ?')}", one.answers)
        for one in examples
    ]


def write_glue(folder: Path, rows: dict[str, list[list[str]]]) -> Path:
    """Write files such as SST-2/dev.tsv, with the sentences and the label of each row."""
    for file, lines in rows.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        header = COLUMNS[path.parent.name]
        path.write_text("".join("\t".join(line) + "\n" for line in (header, *lines)))
    return folder


def attack_glue(folder: Path, rows: dict[str, list[list[str]]], changed: dict[str, list[int]]) -> Path:
    """Add a word to the first sentence of each changed row."""
    for file, numbers in changed.items():
        rows = {**rows, file: [list(row) for row in rows[file]]}
        for number in numbers:
            rows[file][number][0] += " noun7"
    write_glue(folder, rows)
    (folder / "attack.json").write_text(json.dumps({"attack": {"seed": 3}, "changed": changed}))
    return folder
