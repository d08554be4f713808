"""``tn-fairseq`` finds the right command, without delay; ``python -m tn_fairseq`` is the same."""

import os
import runpy
import subprocess
import sys
from importlib import import_module
from unittest.mock import Mock

import pytest
from files import refused
from helpers import PLUGIN, run_command

from tn_fairseq.__main__ import COMMANDS, main
from tn_fairseq.commands import GROUPS


def help_of(capsys, *words: str) -> str:
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    return capsys.readouterr().out


def file_of(command: str) -> str:
    return command.replace(" ", "_").replace("-", "_")


def test_help_has_one_line_for_each_command(capsys):
    for flag in ("--help", "-h"):
        main([flag])
        lines = capsys.readouterr().out.splitlines()
        for command, summary in COMMANDS.items():
            assert [line.split(summary)[0].strip() for line in lines if line.endswith(summary)] == [command]
    for group in GROUPS:
        if group:
            main([group])
            shown = capsys.readouterr().out
            assert all(f"  {group} {name} " in shown for name in GROUPS[group])


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("", "tn-fairseq --help"),
        ("--train", "tn-fairseq --help"),
        ("data binarise --train x", "did you mean data binarize"),
        ("doctr", "did you mean look doctor"),
        ("glue", "did you mean data glue or evaluate glue?"),
        ("train_tokenizer", "did you mean data train-tokenizer"),
        ("data user-dir", "did you mean user-dir"),
    ],
)
def test_an_unknown_command_gets_one_line_with_the_similar_ones(words, hint):
    message = refused(main, words.split())
    assert message.startswith("error: ") and hint in message


def test_the_name_of_the_group_may_be_left_out(capsys):
    assert help_of(capsys, "binarize") == help_of(capsys, "data", "binarize")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_file_of_its_own_and_shows_how_to_run_it(command, capsys):
    text = help_of(capsys, *command.split())
    assert text.startswith(f"usage: tn-fairseq {command} [-h]")
    assert text.count(f"tn-fairseq {command}") >= 1 + (command not in ("user-dir", "synonyms fetch-wordnet"))
    assert ".py" not in text.replace("example.py", "")
    module = import_module(f"tn_fairseq.commands.{file_of(command)}")
    assert module.main.__doc__


def test_there_is_a_file_for_each_command_and_the_options_that_some_share():
    files = {path.stem for path in (PLUGIN / "commands").glob("*.py")}
    assert files - {"__init__", "arguments", "binarizing", "evaluating"} == set(map(file_of, COMMANDS))


def test_the_scripts_for_users_of_fairseq_run_the_commands(capsys, monkeypatch):
    for script in (PLUGIN.parent / "preprocess").glob("*.py"):
        command = script.read_text().split("``")[1].removeprefix("tn-fairseq ")
        monkeypatch.setattr(sys, "argv", [str(script), "--help"])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(str(script), run_name="__main__")
        assert capsys.readouterr().out == help_of(capsys, *command.split())


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        (["tn-fairseq"], "user-dir", f"{PLUGIN}\n"),
        ([sys.executable, "-m", "tn_fairseq"], "--help", "  data binarize "),
        (["tn-fairseq"], "evaluate glue --help", "--tasks"),
    ],
)
def test_the_folder_and_the_help_do_not_import_torch(program, words, said, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    run = run_command(*program, *words.split(), cwd=tmp_path)
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert run.code == 0 and said in run.stdout
    assert "tn_fairseq" in imported and not {"torch", "fairseq", "numpy"} & imported


def test_a_reader_that_ends_early_gets_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run([sys.executable, "-m", "tn_fairseq", "--help"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (run.returncode, run.stderr) == (1, b"")


@pytest.mark.parametrize("advice, more", [((), ""), (("run it again",), "; run it again")])
def test_an_interrupted_command_gets_one_line(advice, more, monkeypatch, capsys):
    monkeypatch.setattr("tn_fairseq.commands.user_dir.main", Mock(side_effect=KeyboardInterrupt(*advice)))
    with pytest.raises(SystemExit) as stop:
        main(["user-dir"])
    assert (stop.value.code, capsys.readouterr().err) == (130, f"error: interrupted{more}\n")


def test_other_commands_import_the_complete_plugin_and_need_no_tensorboard(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    (tmp_path / "tensorboardX.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    run = run_command("tn-fairseq", "evaluate", "glue", fresh=True)
    assert run.code == 1 and "tn_fairseq.criterions" in run.stderr
    assert "tensorboardX" in run.stderr and "Please install" not in run.stderr


def test_the_plugin_registers_when_fairseq_is_imported_before(tmp_path):
    program = "import sys, fairseq, tn_fairseq\nprint('tn_fairseq.criterions' in sys.modules)"
    (tmp_path / "program.py").write_text(program)
    run = run_command(sys.executable, tmp_path / "program.py")
    assert run.code == 0 and run.stdout.strip() == "True", run.output
