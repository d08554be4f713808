"""``python -m tn_fairseq`` prints the folder for --user-dir without delay."""

import sys

from helpers import PLUGIN, run_command


def test_only_the_folder_is_printed_and_torch_is_not_imported(tmp_path):
    run = run_command(sys.executable, "-X", "importtime", "-m", "tn_fairseq", cwd=tmp_path)
    assert (run.code, run.stdout) == (0, f"{PLUGIN}\n")
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "tn_fairseq" in imported and not {"torch", "fairseq", "numpy"} & imported


def test_other_commands_import_the_complete_plugin():
    run = run_command(sys.executable, "-X", "importtime", "-m", "tn_fairseq.tools.evaluation", "--help")
    assert run.code == 0 and "tn_fairseq.criterions" in run.stderr
