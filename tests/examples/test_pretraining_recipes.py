"""The recipes of the paper's tables: their settings match the paper, and run.sh trains each of them."""

import os
import re
import shlex
import subprocess
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
import torch
from fairseq import options
from fairseq.dataclass.initialize import add_defaults, hydra_init
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli.hydra_train import _hydra_main
from guides import guide
from helpers import PLUGIN, prepare_training, write_programs
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = PLUGIN.parent
FOLDER = ROOT / "examples" / "pretraining"
RUN = FOLDER / "run.sh"
PAGE = guide("train", "Paper recipes")
CRITERIA = {
    "baseline": "electra",
    "hard_correction": "mlm_hard_correction",
    "hard_correction_vectors": "mlm_hard_correction",
    "soft_regularization": "mlm_soft_reg",
    "sentence_kl": "mlm_sent_kl",
}
ROWS = ["baseline", "hard_correction", "soft_regularization"]  # every model has these; ELECTRA small has all five
EXPECTED = {f"{model}/{row}" for model in ("bert_base", "bert_large", "electra_base") for row in ROWS} | {
    f"electra_small/{row}" for row in CRITERIA
}
RECIPES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.yaml"))
# with and without a checkpoint and a table; run.sh treats the others alike
VARIOUS = ["bert_base/hard_correction", "electra_base/soft_regularization", "electra_small/baseline"]
CONTINUING = [recipe for recipe in RECIPES if not recipe.startswith("electra_small/")]

LAYERS = ("layers", "embed_dim", "attention_heads", "ffn_embed_dim")
# layers, hidden size, heads, feed-forward size (Devlin et al. 2019; Clark et al. 2020)
SIZES = {
    "bert_base": {"encoder": (12, 768, 12, 3072)},
    "bert_large": {"encoder": (24, 1024, 16, 4096)},
    "electra_base": {"encoder": (12, 768, 12, 3072), "generator": (12, 256, 4, 1024), "embedding_size": 768},
    "electra_small": {"encoder": (12, 256, 4, 1024), "generator": (12, 64, 1, 256), "embedding_size": 128},
}


def needs_table(recipe: str) -> bool:
    return "/hard_correction" in recipe


def composed(recipe: str, overrides: list[str]) -> DictConfig:
    """The configuration that fairseq-hydra-train makes from a YAML file and overrides."""
    model, name = recipe.split("/")
    hydra_init(name)
    with initialize_config_dir(str(FOLDER / model), version_base="1.1"):
        cfg = compose(name, overrides)
    add_defaults(cfg)
    return cfg


@cache
def as_written(recipe: str) -> DictConfig:
    """A YAML file without overrides. Callers must copy it before they change it."""
    return composed(recipe, [])


def settings(cfg: DictConfig) -> dict:
    return OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """Arguments for a recipe that does not run. Their paths have characters that are special in Hydra."""
    folder = tmp_path / "it's, a {path} [1]=(2)"
    (folder / "data").mkdir(parents=True)
    for name in ("checkpoint", "table"):
        (folder / name).touch()
    return {
        "data": folder / "data",
        "save_dir": folder / "save",
        "checkpoint": folder / "checkpoint",
        "synonym_table": folder / "table",
    }


def arguments(recipe: str, files: dict[str, Path]) -> list[str]:
    """The arguments that a recipe needs."""
    given = {"data", "save_dir"}
    given |= {"checkpoint"} if recipe in CONTINUING else set()
    given |= {"synonym_table"} if needs_table(recipe) else set()
    return [f"{name}={path}" for name, path in files.items() if name in given]


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """fairseq-hydra-train prints its arguments, torchrun and srun start one worker, and torch sees eight GPUs."""
    folder = write_programs(
        tmp_path / "tools",
        fairseq_hydra_train="printf '%s\\0' \"$@\"",
        torchrun='while [[ $1 != --no-python ]]; do shift; done; shift; "$@"',
        srun='while [[ $1 == --*=* ]]; do shift; done; "$@"',
        python="echo 8",
    )
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


@pytest.fixture
def overrides(tools, tmp_path):
    """The overrides that run.sh passes to fairseq-hydra-train, which does not run."""

    def run(recipe: str, *words: object, before: tuple = ()) -> list[str]:
        command = [str(word) for word in (*before, RUN, recipe, *words)]
        process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert process.returncode == 0, process.stderr
        flag, folder, other_flag, name, *overrides = process.stdout.rstrip("\0").split("\0")
        assert (flag, other_flag) == ("--config-dir", "--config-name")
        assert Path(folder, name) == FOLDER / recipe
        return overrides

    return run


@pytest.fixture
def run_sh(overrides):
    """The configuration that fairseq-hydra-train makes from the arguments of run.sh."""
    return lambda recipe, *words, before=(): composed(recipe, overrides(recipe, *words, before=before))


# The YAML files


def test_there_is_a_recipe_for_every_row():
    assert set(RECIPES) == EXPECTED and len(RECIPES) == 14
    assert sorted(path.name for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".yaml") == ["run.sh"]
    assert os.access(RUN, os.X_OK)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_the_papers_settings(recipe):
    model, row = recipe.split("/")
    cfg = settings(as_written(recipe))
    assert cfg["common"]["user_dir"] == "tn_fairseq"
    task, optimization, lr_scheduler = (cfg[name] for name in ("task", "optimization", "lr_scheduler"))
    assert task["_name"] == "electra" and task["sample_break_mode"] == "segments" and task["mask_prob"] == 0.15
    masking = task["leave_unmasked_prob"], task["random_token_prob"]
    assert masking == ((0.1, 0.1) if model.startswith("bert") else (0.15, 0.0))
    small = model == "electra_small"
    assert task["tokens_per_sample"] == (128 if small else 512)
    assert optimization["max_update"] == lr_scheduler["total_num_update"] == (1_000_000 if small else 200_000)
    assert optimization["lr"] == [5e-4 if small else 5e-5] and optimization["clip_norm"] == 1
    assert lr_scheduler["_name"] == "polynomial_decay" and lr_scheduler["warmup_updates"] == 10_000
    assert lr_scheduler["end_learning_rate"] == 0 and lr_scheduler["power"] == 1
    optimizer = cfg["optimizer"]
    assert optimizer["_name"] == "electra_adamw" and not optimizer["adam_bias_correction"]
    assert (optimizer["adam_betas"], optimizer["adam_eps"], optimizer["weight_decay"]) == ("(0.9, 0.999)", 1e-6, 0.01)
    assert cfg["common"]["fp16"] and cfg["common"]["fp16_no_flatten_grads"]

    criterion = cfg["criterion"]
    assert criterion["_name"] == CRITERIA[row] and criterion["prediction_mode"] == "argmax"
    assert criterion["synonym_table"] == ("SYNONYM_TABLE" if needs_table(recipe) else None)
    if model.startswith("electra"):
        assert (criterion["generator_loss_weight"], criterion["discriminator_loss_weight"]) == (1, 50)

    sizes = cfg["model"]
    assert sizes["_name"] == model and sizes["max_positions"] == 512
    assert sizes["dropout"] == sizes["attention_dropout"] == 0.1
    for part, expected in SIZES[model].items():
        found = sizes[part] if part == "embedding_size" else tuple(sizes[f"{part}_{size}"] for size in LAYERS)
        assert found == expected, part
    # not ???, which fairseq drops, so that it would train from scratch
    assert cfg["checkpoint"]["finetune_from_model"] == (None if small else "CHECKPOINT") and task["data"] == "DATA_BIN"
    gpus = cfg["distributed_training"]["distributed_world_size"]
    assert gpus * cfg["dataset"]["batch_size"] * optimization["update_freq"][0] == 128
    assert f"](../examples/pretraining/{recipe}.yaml)" in PAGE


# The configurations that run.sh makes


@pytest.mark.parametrize("recipe", VARIOUS)
def test_run_sh_sets_the_paths_and_nothing_else(recipe, files, run_sh, tmp_path):
    """With the number of GPUs in the recipe; relative paths become absolute."""
    yaml = deepcopy(as_written(recipe))
    yaml.common.user_dir = str(PLUGIN)
    yaml.task.data, yaml.checkpoint.save_dir = f"{files['data']}:{files['data']}", str(files["save_dir"])
    if recipe in CONTINUING:
        yaml.checkpoint.finetune_from_model = str(files["checkpoint"])
    if needs_table(recipe):
        yaml.criterion.synonym_table = str(files["synonym_table"])
    gpus = f"distributed_training.distributed_world_size={yaml.distributed_training.distributed_world_size}"
    relative = {name: path.relative_to(tmp_path) for name, path in files.items()}
    relative["data"] = f"{relative['data']}:{files['data']}"
    assert settings(run_sh(recipe, *arguments(recipe, relative), gpus)) == settings(yaml)


def test_the_batch_is_the_same_on_any_number_of_gpus(files, overrides, tools):
    recipe = "electra_small/baseline"

    def batch(gpus: int, *more: str) -> int:
        write_programs(tools, python=f"echo {gpus}")
        given = dict(word.split("=", 1) for word in overrides(recipe, *arguments(recipe, files), *more))
        assert given["distributed_training.distributed_world_size"] == str(gpus)
        return gpus * int(given["dataset.batch_size"]) * int(given["optimization.update_freq"].strip("[]"))

    for gpus in (1, 8, 128):
        assert batch(gpus) == 128, gpus
    assert batch(2, "dataset.batch_size=4") == 128
    assert batch(3, "dataset.batch_size=5", "optimization.update_freq=[2]") == 30


def test_settings_of_the_user_win(files, run_sh):
    given = arguments("bert_base/baseline", files)
    cfg = run_sh("bert_base/baseline", *given, f"synonym_table={files['synonym_table']}", "--cpu")
    assert cfg.criterion.synonym_table == str(files["synonym_table"])  # which it does not need
    assert cfg.common.cpu and not cfg.common.fp16 and cfg.distributed_training.distributed_world_size == 1
    more = ["common.fp16=true", "task.tokens_per_sample=64", "+lr_scheduler.power=2"]
    cfg = run_sh("bert_base/baseline", *given, "--cpu", *more)
    assert cfg.common.fp16 and cfg.task.tokens_per_sample == 64 and cfg.lr_scheduler.power == 2


def test_run_sh_accepts_the_flags_of_a_launcher(files, run_sh, tools, monkeypatch):
    """They have the same effect as with fairseq-train."""
    launcher = ROOT / "examples" / "launch" / "slurm.sbatch"
    for name, value in {"WORKERS": "4", "SLURM_NNODES": "2", "SLURM_JOB_ID": "7", "DEVICE": "cpu"}.items():
        monkeypatch.setenv(name, value)
    cfg = run_sh("bert_base/baseline", *arguments("bert_base/baseline", files), before=(launcher,))
    workers = cfg.distributed_training.distributed_world_size
    assert workers == 8 and workers * cfg.dataset.batch_size * cfg.optimization.update_freq[0] == 128

    flags = subprocess.run([launcher, "printf", "%s\n"], capture_output=True, text=True, check=True).stdout.split()
    train = ["data", "--task", "electra", "--arch", "bert_base", "--criterion", "electra", *flags]
    expected = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), train))
    assert settings(cfg.distributed_training) == settings(expected.distributed_training)
    assert cfg.common.cpu and not cfg.common.fp16


def test_commands_of_the_guide_are_accepted(tools, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ("wikibooks", "openwebtext"):
        (tmp_path / name).mkdir()
    for name in ("bert_base.pt", "wordnet.safetensors"):
        (tmp_path / name).touch()
    environment = {**os.environ, "SLURM_NNODES": "2", "SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "4", "WORKERS": "4"}
    (tools / "sbatch").symlink_to("/usr/bin/env")
    blocks = re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
    commands = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if "run.sh" in line]
    assert len(commands) == 2
    for command in commands:
        process = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert process.returncode == 0 and not process.stderr, command
        _, folder, _, name, *words = process.stdout.rstrip("\0").split("\0")
        recipe = next(word for word in shlex.split(command) if word in RECIPES)
        assert Path(folder, name) == FOLDER / recipe
        composed(recipe, words)


# Training


def test_a_run_continues_the_checkpoint_and_the_same_command_resumes(data_bin, synonym_table, run_sh, tmp_path, caplog):
    """A checkpoint of BERT takes the place of released weights; all paths contain a space."""
    flags = ["--task", "electra", "--arch", "bert_tiny", "--criterion", "electra", "--max-update", 1]
    prepare_training(data_bin, tmp_path / "released", *flags)()
    recipe, released = "bert_base/hard_correction", tmp_path / "released" / "checkpoint_last.pt"
    files = {"data": tmp_path / "a data-bin", "save_dir": tmp_path / "a save", "checkpoint": tmp_path / "a bert.pt"}
    files["synonym_table"] = tmp_path / "a table.safetensors"
    for name, path in (("data", data_bin), ("checkpoint", released), ("synonym_table", synonym_table)):
        files[name].symlink_to(path)
    smaller = ["model._name=bert_tiny", "task.tokens_per_sample=32", "dataset.num_workers=0", "dataset.batch_size=8"]
    smaller += ["optimization.update_freq=[1]", "+lr_scheduler.total_num_update=20", "--cpu"]
    caplog.set_level("INFO")
    states = [torch.load(released, weights_only=True)["model"]]
    for updates, more in ((2, []), (3, [f"checkpoint={tmp_path / 'gone'}"])):
        words = [*arguments(recipe, files), *more, *smaller, f"optimization.max_update={updates}"]
        _hydra_main(run_sh(recipe, *words))
        state = torch.load(files["save_dir"] / "checkpoint_last.pt", weights_only=True)
        assert state["optimizer_history"][-1]["num_updates"] == updates
        states.append(state["model"])
    assert f"Loaded checkpoint {files['checkpoint']} (epoch 1 @ 0 updates)" in caplog.text
    assert f"Loaded checkpoint {files['save_dir']}/checkpoint_last.pt (epoch 1 @ 2 updates)" in caplog.text
    assert "false_negative_rate" in caplog.text
    # after two updates of warm-up the weights are still close to the loaded ones
    torch.testing.assert_close(states[1], states[0], atol=1e-6, rtol=0)
    assert any(not torch.equal(states[1][name], tensor) for name, tensor in states[0].items())


# Wrong input


def refusal(*words: object, cwd: Path) -> str:
    process = subprocess.run([str(word) for word in (RUN, *words)], capture_output=True, text=True, cwd=cwd)
    assert (process.returncode, process.stdout) == (1, ""), process.stdout
    assert re.fullmatch(r"error: .*\n", process.stderr), process.stderr
    return process.stderr


def test_wrong_arguments_get_an_error(files, tools, tmp_path, monkeypatch):
    for words in ([], ["bert_huge/baseline"], ["data=x"]):
        assert refusal(*words, cwd=tmp_path).endswith(f"one of: {' '.join(RECIPES)}\n")
    for argument in arguments("bert_base/hard_correction", files):
        others = [word for word in arguments("bert_base/hard_correction", files) if word != argument]
        name = argument.partition("=")[0]
        for wrong in ([], *([[f"{name}=nowhere"]] if name != "save_dir" else [])):
            assert f"{name}=" in refusal("bert_base/hard_correction", *others, *wrong, cwd=tmp_path)
    recipe = "electra_small/baseline"
    given = arguments(recipe, files)
    file = files["checkpoint"]
    for words, named in (
        (["chekpoint=bert.pt"], "chekpoint=bert.pt"),
        (["wikibooks"], "wikibooks"),
        ([f"checkpoint={file}"], "checkpoint="),
        (["synonym_table=nowhere"], "synonym_table=nowhere"),
        ([f"data={files['data']}:nowhere"], "data=nowhere"),
        ([f"save_dir={file}"], "save_dir="),
        (["--distributed-world-size", "3"], "3 workers"),
        (["--cpu", "dataset.batch_size=5"], "dataset.batch_size=5"),
    ):
        assert named in refusal(recipe, *given, *words, cwd=tmp_path)
    for python, named in (("echo 0", "--cpu"), ("echo no torch >&2; exit 1", "torch")):
        write_programs(tools, python=python)
        assert named in refusal(recipe, *given, cwd=tmp_path)
    (tools / "fairseq-hydra-train").unlink()
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    assert "fairseq-hydra-train" in refusal(recipe, *given, "--cpu", cwd=tmp_path)
    assert not files["save_dir"].exists()
