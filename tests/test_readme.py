"""The README keeps its word: its commands run, its options exist, and no option of the plugin is missing from it."""

import json
import re
import shlex
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from fairseq import options
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from helpers import PLUGIN, Run, load_script, run_command
from huggingface_models import make_electra, write_vocabulary

import tn_fairseq  # noqa: F401  registers what the README describes
from tn_fairseq.analysis.__main__ import main as analysis
from tn_fairseq.analysis.report import FILES
from tn_fairseq.evaluation.__main__ import main as evaluation
from tn_fairseq.huggingface.__main__ import main as huggingface

pytestmark = pytest.mark.xdist_group("readme")  # its commands follow on each other
ROOT = PLUGIN.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# title of a section -> the commands in it
COMMANDS = {
    section.split("\n", 1)[0]: [
        shlex.split(command)
        for block in re.findall(r"```bash\n(.*?)```", section, flags=re.DOTALL)
        for command in block.replace("\\\n", " ").splitlines()
        if command.strip()
    ]
    for section in README.split("\n## ")
}
OURS = [
    dataclass
    for registry in (
        CRITERION_DATACLASS_REGISTRY,
        MODEL_DATACLASS_REGISTRY,
        OPTIMIZER_DATACLASS_REGISTRY,
        TASK_DATACLASS_REGISTRY,
    )
    for name, dataclass in registry.items()
    if dataclass.__module__.startswith("tn_fairseq") or name.startswith(("bert_", "electra_"))
]
INTERPOLATED = {"_name", "data", "seed", "lr"}  # positional, or fairseq's own options


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def test_every_option_of_the_plugin_is_in_the_readme_with_its_default():
    assert len(OURS) == 4 + 7 + 1 + 2  # criteria, models, optimizer, tasks
    mentioned = set(re.findall(r"--[a-z][a-z0-9-]*", README))
    missing = {flag(field.name) for dataclass in OURS for field in fields(dataclass)} - mentioned
    assert missing == {flag(name) for name in INTERPOLATED} - mentioned
    for dataclass in OURS:
        for field in fields(dataclass):
            if field.name.startswith(("soft_reg", "sent_kl", "hard_correction", "rtd_")) and field.default is not False:
                default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
                assert f"`{flag(field.name)} {default}`" in README, field.name


def test_every_option_in_the_readme_exists(capsys):
    commands = [[load_script(f"preprocess/{script.name}").main] for script in (ROOT / "preprocess").glob("*.py")]
    commands += [[huggingface, command] for command in ("import", "export")]
    commands += [[analysis]]
    commands += [[evaluation, command] for command in ("glue", "squad", "squad-score")]
    commands += [[options.get_training_parser().parse_args], [options.get_preprocessing_parser().parse_args]]
    for main, *words in commands:
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--help"])
    known = capsys.readouterr().out
    known += " ".join(flag(field.name) for dataclass in OURS for field in fields(dataclass))
    known += " --warmup-updates --total-num-update"  # of --lr-scheduler polynomial_decay, hidden like a plugin's
    existing = set(re.findall(r"--[a-z][a-z0-9-]*", known))
    assert set(re.findall(r"--[a-z][a-z0-9-]*", README)) - existing == set()


def test_names_in_the_readme_exist():
    for module, name in re.findall(r"`(objectives|corruption)\.(\w+)`", README):
        assert hasattr(import_module(f"tn_fairseq.{module}"), name), name
    for path in re.findall(r"`((?:synonyms|criterions|models|tasks|optim)/\w+\.py)`", README):
        assert (PLUGIN / path).exists(), path
    for link in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / link).exists(), link
    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), target


SUBJECTS = [
    "The main road",
    "A large house",
    "The old man",
    "Every good student",
    "The primary function",
    "A small dog",
]
VERBS = ["leads to", "looks like", "begins near", "stay in", "remains close to", "starts before"]
OBJECTS = ["the big city.", "an ancient bridge.", "the chief station.", "a little garden.", "the great river."]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a corpus of its own, and the repository's folders beside it."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("preprocess", "tn_fairseq", "examples"):
        (folder / name).symlink_to(ROOT / name)
    sentences = [f"{a} {b} {c}" for a in SUBJECTS for b in VERBS for c in OBJECTS]
    documents = ["\n".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6)]
    (folder / "corpus.train.txt").write_text("\n\n".join(documents * 4) + "\n")
    (folder / "corpus.valid.txt").write_text("\n\n".join(documents[::5]) + "\n")
    return folder


SMALLER = {"30522": "160", "electra_small": "electra_tiny", "128": "16", "1000000": "4", "10000": "2", "100": "1"}
SMALLER |= {"1,2,3,4,5": "1", "1,2,3": "1"}
SMALLER |= {"electra_base": "electra_tiny", "512": "16", "200000": "4"}
ELECTRA_TINY = {"embedding_size": 128, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512}


def run_section(title: str, folder: Path) -> Run:
    """Run a section's commands as they stand there, but for the sizes; what the last one said."""
    for command in COMMANDS[title]:
        words = [SMALLER.get(word, word) for word in command]
        words[0] = sys.executable if words[0] == "python" else words[0]
        words[:0] = ["env"] if "=" in words[0] else []
        run = run_command(*words, *(["--cpu", "--num-workers", 0] if words[0] == "fairseq-train" else []), cwd=folder)
        assert run.code == 0, run.output
    return run


@pytest.fixture(scope="module")
def trained(corpus):
    """What the last of the four commands said; its checkpoints lie in the corpus' folder."""
    title = "Your own corpus in four commands"
    assert len(COMMANDS[title]) == 4
    return run_section(title, corpus)


def test_your_own_corpus_in_four_commands(corpus, trained):
    run = trained
    assert (corpus / "checkpoints" / "checkpoint_last.pt").exists()
    assert "num_updates 4" in run.output and "false_negative_rate" in run.output

    show = re.search(r"`(python preprocess/build_synonym_table.py [^`]*--show[^`]*)`", README).group(1)
    run = run_command(sys.executable, *shlex.split(show)[1:], cwd=corpus)
    assert run.code == 0 and "primary: " in run.output, run.output


def test_many_workers(corpus, trained):
    run = run_section("Many workers", corpus)
    assert "training on 2 devices" in run.output
    assert (corpus / "checkpoints-of-two" / "checkpoint_last.pt").exists()


def test_released_weights_in_and_out(corpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    for name in ("preprocess", "tn_fairseq", "corpus.train.txt", "corpus.valid.txt"):
        (tmp_path / name).symlink_to(corpus / name)
    # the released models' names, with a vocabulary of this corpus and tiny sizes
    words = re.findall(r"\w+|[.]", (corpus / "corpus.train.txt").read_text().lower())
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(words))]
    discriminator, generator = make_electra(len(pieces), **ELECTRA_TINY, generator_sizes={"hidden_size": 128})
    for name, model in (("discriminator", discriminator), ("generator", generator)):
        model.save_pretrained(write_vocabulary(tmp_path / f"electra-base-{name}", pieces))
    run = run_section("Released weights in and out", tmp_path)
    assert "my-electra/discriminator" in run.stdout and "my-electra/generator" in run.stdout
    transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "my-electra" / "discriminator")
    transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "my-electra" / "generator")


def test_see_the_false_negatives(corpus, trained):
    run = run_section("See the false negatives", corpus)
    assert "from the paper (not ours)" in run.stdout
    named = set(re.findall(r"`((?:\w+)?\.(?:csv|json|png|svg|html))`", README.split("## See the false negatives")[1]))
    assert {name for name in FILES if name.endswith((".html", ".csv"))} < named
    assert all((corpus / "false-negatives" / name).exists() for name in FILES)


def test_glue_and_squad(corpus, trained):
    sentences = (corpus / "corpus.valid.txt").read_text().splitlines()[:12]
    checkpoint = corpus / "checkpoints" / "checkpoint_last.pt"
    (corpus / "electra.pt").write_bytes(checkpoint.read_bytes())
    (corpus / "glue" / "CoLA").mkdir(parents=True)
    (corpus / "glue" / "MRPC").mkdir()
    for split in ("train", "dev"):
        rows = [f"x\t{n % 2}\t\t{sentence}" for n, sentence in enumerate(sentences)]
        (corpus / "glue" / "CoLA" / f"{split}.tsv").write_text("\n".join(rows) + "\n")
        rows = [f"{n % 2}\t1\t2\t{sentence}\t{sentences[0]}" for n, sentence in enumerate(sentences)]
        header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
        (corpus / "glue" / "MRPC" / f"{split}.tsv").write_text("\n".join([header, *rows]) + "\n")
    questions = [
        {"id": f"q{n}", "question": "Which road?", "answers": [{"text": sentence[:8], "answer_start": 0}]}
        for n, sentence in enumerate(filter(None, sentences))
    ]
    paragraphs = [{"context": s, "qas": [q]} for s, q in zip(filter(None, sentences), questions)]
    for name in ("train-v1.1.json", "dev-v1.1.json"):
        data = [{"title": "Roads", "paragraphs": paragraphs}]
        (corpus / name).write_text(json.dumps({"version": "1.1", "data": data}))
    run = run_section("GLUE and SQuAD", corpus)
    assert set(json.loads(run.stdout)) == {"exact_match", "f1"}
    table = (corpus / "scores" / "glue.txt").read_text()
    assert "less plain" in table and "from the paper (not ours)" in table
    assert "corrected" in (corpus / "scores" / "squad.txt").read_text()


def test_no_command_is_left_untried():
    tried = {"Your own corpus in four commands", "Released weights in and out", "See the false negatives"}
    tried |= {"Many workers", "GLUE and SQuAD"}
    others = [command for title, commands in COMMANDS.items() if title not in tried for command in commands]
    assert others == [["make", "demo"], ["make", "test"]]
    assert Path(ROOT / ".ci" / "run").read_text().rstrip().endswith("make test")
