"""``python -m tn_fairseq.preprocessing`` runs the right command, as do the scripts in preprocess/."""

import runpy
import sys

import pytest
from helpers import PLUGIN
from preprocessed import refused

from tn_fairseq.tools.preprocessing.__main__ import COMMANDS, main


def help_of(capsys, *words: str) -> str:
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    return capsys.readouterr().out


def test_help_lists_every_command_in_one_line(capsys):
    for flag in ("--help", "-h"):
        main([flag])
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[lines.index("commands:") + 1 :]] == list(COMMANDS)
        assert all(summary in line for summary, line in zip(COMMANDS.values(), lines[-len(COMMANDS) :], strict=True))


@pytest.mark.parametrize("words", [[], ["binarise", "--train", "x"], ["--train"], ["__init__"], ["train_tokenizer"]])
def test_an_unknown_command_gets_one_line_that_lists_all_commands(words):
    message = refused(main, words)
    assert message.startswith("error: ") and all(text in message for text in [*COMMANDS, *map(repr, words[:1])])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_no_other_command_and_shows_how_to_run_it(command, capsys, monkeypatch):
    folder = "tn_fairseq.tools.preprocessing.commands"
    for module in [name for name in sys.modules if name.startswith(folder)]:
        monkeypatch.delitem(sys.modules, module)
    text = help_of(capsys, command)
    assert [name for name in sys.modules if name.startswith(f"{folder}.")] == [f"{folder}.{command.replace('-', '_')}"]
    assert text.count(f"python -m tn_fairseq.preprocessing {command} ") >= 2  # the usage and an example
    assert "preprocess/" not in text and ".py" not in text


def test_there_is_a_script_for_each_command_that_runs_it(capsys, monkeypatch):
    scripts = {path.stem.replace("_", "-"): path for path in (PLUGIN.parent / "preprocess").glob("*.py")}
    assert scripts.keys() == COMMANDS.keys()
    for command, script in scripts.items():
        monkeypatch.setattr(sys, "argv", [str(script), "--help"])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(str(script), run_name="__main__")
        assert capsys.readouterr().out == help_of(capsys, command)
