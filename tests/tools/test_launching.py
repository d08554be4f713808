"""Commands with logs: their progress, their failures, their lock, and their end if the program is interrupted."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from engine_checks import running, wait_until
from files import refused

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools import launching as module
from tn_fairseq.tools.launching import Stopped, last_line, launching

SLEEP = ["python", "-c", "import time; print('ready', flush=True); time.sleep(300)"]


def python(code: str) -> list[str]:
    return ["python", "-c", code]


def record(updates: int) -> str:
    return f"2026-01-01 | INFO | train_inner | {json.dumps({'num_updates': str(updates), 'loss': '2.5'})}"


def test_a_command_appends_to_its_log_in_its_folder_with_its_threads(tmp_path):
    (tmp_path / "log").write_text("before\n")
    code = "import os, sys; print(os.getcwd(), os.environ['OMP_NUM_THREADS']); print('last', file=sys.stderr); exit(3)"
    with launching(tmp_path / "lock", "locked", tmp_path) as launcher:
        assert launcher.start(python(code), tmp_path / "log", threads=7).wait() == 3
        assert launcher.start(["sh", "-c", "command -v python"], tmp_path / "new" / "log").wait() == 0
    assert (tmp_path / "log").read_text() == f"before\n{tmp_path} 7\nlast\n"
    assert (tmp_path / "new" / "log").read_text() == f"{Path(sys.executable).parent / 'python'}\n"
    assert last_line(tmp_path / "log") == "last" and last_line(tmp_path / "none") == "no output"


def test_records_come_while_the_command_runs_and_the_plugins_warnings_are_shown(tmp_path, capsys):
    """It waits for a file that is written when the first record is there."""
    code = f"""
        import os, time
        print({record(1)!r})
        while not os.path.exists("seen"):
            time.sleep(0.01)
        print("2026-01-01 | WARNING | tn_fairseq.models | slow; use | this")
        print("2026-01-01 | WARNING | fairseq.tasks | not ours")
        print({record(2)!r}, end="")
    """
    (tmp_path / "run").mkdir()
    log = tmp_path / "run" / "log"
    log.write_text(f"{record(9)}\n")  # of an earlier sitting
    found = []
    with launching(tmp_path / "lock", "locked", tmp_path) as launcher:
        for one in filter(None, launcher.train(python("if True:" + code), log)):
            found.append(one["num_updates"])
            (tmp_path / "seen").touch()
    assert found == ["1", "2"]
    assert capsys.readouterr().err == f"{tmp_path / 'run'}: slow; use | this\n"


def test_failures_are_one_line_with_the_log(tmp_path):
    log = tmp_path / "log"
    code = "import sys; print('started'); sys.exit('error: no data; give some')"
    with launching(tmp_path / "lock", "locked") as launcher:
        assert refused(list, launcher.train(python(code), log)) == f"{log}: python failed: no data; give some"
        assert refused(launcher.start, ["nosuch", "a"], log) == "nosuch: No such file or directory; check the command"


@pytest.mark.parametrize("named, expected", [(None, ["0", "1"]), ("3,GPU-5", ["3", "GPU-5"]), ("2", ["2", "2"])])
def test_each_command_gets_the_gpu_with_the_fewest_commands(named, expected, tmp_path, monkeypatch):
    """Otherwise, fairseq-train uses all of them, each for a batch."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2 if named is None else len(named.split(",")))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    words = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 300"]

    def see(launcher, name, *more):
        command = launcher.start([*words, *more], tmp_path / name)
        wait_until(lambda: last_line(tmp_path / name) != "no output" or not running(command.process.pid))
        return command

    with launching(tmp_path / "lock", "locked") as launcher:
        commands = [see(launcher, "0"), see(launcher, "1")]
        assert [last_line(tmp_path / name) for name in "01"] == expected
        os.killpg(commands[1].process.pid, signal.SIGKILL)
        assert commands[1].wait() == -signal.SIGKILL
        see(launcher, "2")
        assert last_line(tmp_path / "2") == expected[1]
        launcher.start(["sh", "-c", "echo all: $CUDA_VISIBLE_DEVICES", "--distributed-world-size", "2"], tmp_path / "3")
        wait_until(lambda: last_line(tmp_path / "3") == f"all: {named or ''}".strip())
        launcher.start(["sh", "-c", ": --distributed-world-size=2; echo all: $CUDA_VISIBLE_DEVICES"], tmp_path / "4")
        wait_until(lambda: last_line(tmp_path / "4") == f"all: {named or ''}".strip())


def test_the_programs_are_those_of_this_python(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    with launching(tmp_path / "lock", "locked") as launcher:
        for words in (["python", "a.py"], ["fairseq-train", "data", "--seed", 1], ["tn-fairseq", "look", "doctor"]):
            assert launcher.start(words, tmp_path / "log").wait() == 0
    assert (tmp_path / "log").read_text().splitlines() == [
        "a.py",
        "-m fairseq_cli.train data --seed 1",
        "-m tn_fairseq look doctor",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_commands_with_what_they_started(tmp_path, number):
    log, before = tmp_path / "log", signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), launching(tmp_path / "lock", "locked") as launcher:
        shell = launcher.start(["sh", "-c", "sleep 300 & echo $!; wait"], log)
        other = launcher.start(SLEEP, tmp_path / "other")
        wait_until(lambda: log.read_text().endswith("\n"))
        os.kill(os.getpid(), number)
    assert (shell.process.returncode, other.process.returncode) == (-signal.SIGTERM, -signal.SIGTERM)
    wait_until(lambda: not running(int(log.read_text())))
    assert signal.getsignal(number) == before
    with pytest.raises(Stopped):
        launcher.start(["true"], log)
    with pytest.raises(Stopped):
        shell.wait()


def test_a_command_that_has_just_started_ends_too(tmp_path, monkeypatch):
    """The signal arrives when the command runs, but the launcher does not know it yet."""
    Popen, started = subprocess.Popen, []

    def interrupted(*args, **options):
        started.append(Popen(*args, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr(module.subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt), launching(tmp_path / "lock", "locked") as launcher:
        launcher.start(SLEEP, tmp_path / "log")
    assert started[0].returncode == -signal.SIGTERM


def test_commands_of_other_threads_end_too(tmp_path):
    ends = []

    def follow() -> None:
        try:
            list(launcher.train(SLEEP, tmp_path / "log"))
        except Stopped as end:
            ends.append(end)

    with pytest.raises(KeyboardInterrupt), launching(tmp_path / "lock", "locked") as launcher:
        thread = threading.Thread(target=follow)
        thread.start()
        wait_until(lambda: last_line(tmp_path / "log") == "ready")
        os.kill(os.getpid(), signal.SIGINT)
    thread.join()
    assert len(ends) == 1


def a_program_with_a_command(lock: Path, log: Path) -> list[str]:
    """A program that launches a command, which writes its process id to the log."""
    return python(
        "import sys; sys.argv = ['tn-fairseq']; "  # so that the plugin is not registered, which takes seconds
        "from pathlib import Path; from tn_fairseq.tools.launching import launching\n"
        f"with launching(Path({str(lock)!r}), 'locked') as launcher:\n"
        f"    launcher.start(['sh', '-c', 'echo $$; exec sleep 300'], Path({str(log)!r})).wait()"
    )


def test_a_command_that_launches_commands_ends_them(tmp_path):
    inner = tmp_path / "inner"
    with pytest.raises(KeyboardInterrupt), launching(tmp_path / "lock", "locked") as launcher:
        command = launcher.start(a_program_with_a_command(tmp_path / "inner.lock", inner), tmp_path / "log")
        wait_until(lambda: last_line(inner) != "no output")
        os.kill(os.getpid(), signal.SIGTERM)
    assert command.process.returncode == -signal.SIGINT  # Python's own end of a program after KeyboardInterrupt
    assert not running(int(last_line(inner)))


def test_what_runs_is_ended_if_the_caller_stops(tmp_path):
    with pytest.raises(ZeroDivisionError), launching(tmp_path / "lock", "locked") as launcher:
        command = launcher.start(SLEEP, tmp_path / "log")
        raise ZeroDivisionError
    assert command.process.returncode == -signal.SIGTERM


def test_a_command_that_has_ended_can_be_stopped(tmp_path):
    with launching(tmp_path / "lock", "locked") as launcher:
        command = launcher.start(["true"], tmp_path / "log")
        command.process.wait()  # the launcher does not know it yet


def test_a_killed_program_leaves_its_folder_locked_until_its_command_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0)
    lock, log = tmp_path / "lock", tmp_path / "log"
    program = subprocess.Popen([sys.executable, *a_program_with_a_command(lock, log)[1:]])
    wait_until(lambda: last_line(log) != "no output")
    program.kill()
    program.wait()
    with pytest.raises(InputError, match="^locked$"), launching(lock, "locked"):
        pytest.fail("not locked")
    os.kill(int(last_line(log)), signal.SIGTERM)
    monkeypatch.setattr(module, "PATIENCE", 20)
    with launching(lock, "locked"):
        pass


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    message = refused(launching(tmp_path / "file" / "lock", "locked").__enter__)
    assert message == f"{tmp_path / 'file'}: File exists; name another folder with --output"
