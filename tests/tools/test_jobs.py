"""Jobs: what is done is not repeated, failures and interruptions lose nothing else, and commands run side by side."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_checks import running, wait_until
from files import read_commands, refused

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools import jobs as module
from tn_fairseq.tools.jobs import Job, clock, is_done, last_line, left, run

WAIT = "while [ ! -e {0} ]; do sleep 0.02; done; "  # for a file


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sh(script: str, output: str, **options) -> Job:
    """A command that writes its output."""
    words = ["sh", "-c", f"{script}\ntouch {output}"]
    return Job(
        **{"name": output, "run": words, "output": Path(output).absolute(), "fingerprint": {"run": words}} | options
    )


def function(call: Callable[[], object], output: str, **options) -> Job:
    """A function of ours, which writes its output."""

    def both() -> None:
        call()
        Path(output).touch()

    return Job(**{"name": output, "run": both, "output": Path(output).absolute(), "fingerprint": {}} | options)


def train(script: str, output: str, **options) -> Job:
    """A command that resumes, named fairseq-train: PROGRAMS must be replaced."""
    return sh(script, output, **options | {"run": ["fairseq-train", "-c", f"{script}\ntouch {output}"]})


@pytest.fixture
def fairseq_train(monkeypatch):
    """A shell instead of fairseq-train."""
    monkeypatch.setattr(module.sys, "executable", "/bin/sh")
    monkeypatch.setitem(module.PROGRAMS, "fairseq-train", [])


def record(updates: int) -> str:
    return f"2026-01-01 | INFO | train_inner | {json.dumps({'num_updates': str(updates), 'loss': '2.5'})}"


def states(*jobs: Job) -> list[str | None]:
    return [json.loads(job.marker.read_text())["state"] if job.marker.exists() else None for job in jobs]


# What is done


def test_what_is_done_is_not_repeated_and_needs_come_first(tmp_path, capsys):
    calls: list[str] = []
    first = sh("echo a >> order", "first")
    second = function(lambda: calls.append(Path("order").read_text()), "second", needs=(first,))
    third = sh("echo c >> order", "third", needs=(second,))
    jobs = [third, second, first]
    assert left(jobs) == jobs
    for _ in range(2):
        assert run(jobs, tmp_path) == []
        assert left(jobs) == []
    assert calls == ["a\n"] and Path("order").read_text() == "a\nc\n"
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["[1/3] first", "[2/3] second", "[3/3] third"]
    first.output.unlink()
    assert left(jobs) == [first]
    second.marker.unlink()  # an output without a marker is unfinished
    assert left(jobs) == [second, first]


def test_another_fingerprint_is_refused_or_done_again(tmp_path):
    job = sh(":", "one", fingerprint={"lr": 1, "same": 2, "flags": ["data", "--lr", "1", "--seed", "3"]})
    assert run([job], tmp_path) == []
    other = sh("echo again", "one", fingerprint={"same": 2, "flags": ["data", "--lr", "2", "--seed", "3"]})
    message = refused(run, [sh(":", "before"), other], tmp_path)
    assert message.startswith(f"{job.output}: ") and "--output" in message
    assert "flags: --lr 1 there, --lr 2 here; lr: 1 there, nothing here" in message and "same" not in message
    assert not Path("before").exists()
    again = sh("echo again", "one", fingerprint=other.fingerprint, redo=True)
    assert left([again]) == [again] and run([again], tmp_path) == [] and is_done(again)
    assert job.log_path.read_text() == "again\n"
    job.output.unlink()  # as the refusal advises
    assert run([job], tmp_path) == [] and is_done(job)


def test_what_can_be_redone_follows_what_it_needs(tmp_path):
    calls: list[str] = []
    base = function(lambda: calls.append("base"), "base")
    kept = function(lambda: calls.append("kept"), "kept", needs=(base,))
    measure = function(lambda: calls.append("measure"), "measure", needs=(base,), redo=True)
    run([base, kept, measure], tmp_path)
    base.output.unlink()
    assert left([base, kept, measure]) == [base, measure]
    run([base, kept, measure], tmp_path)
    assert calls == ["base", "kept", "measure", "base", "measure"] and left([base, kept, measure]) == []


def test_only_unfinished_work_that_resumes_is_refused_with_other_settings(tmp_path, fairseq_train):
    assert len(run([train("exit 1", "a", fingerprint={"lr": 1}), sh("exit 1", "b")], tmp_path)) == 2
    assert "lr: 1 there, 2 here" in refused(run, [train(":", "a", fingerprint={"lr": 2})], tmp_path)
    assert run([train(":", "a", fingerprint={"lr": 1}), sh(":", "b")], tmp_path) == []


@pytest.mark.parametrize("content", ["{", "[]", '{"state": "done"}', '{"state": "x", "fingerprint": {}}'])
def test_a_damaged_marker_is_refused(content, tmp_path):
    job = sh(":", "a")
    job.marker.write_text(content)
    assert str(job.marker) in refused(run, [job], tmp_path)


# Failures


def test_a_failure_does_not_stop_the_others_and_is_retried(tmp_path, capsys):
    def refuse() -> None:
        if not Path("fixed").exists():
            raise InputError("no data; give some")

    def full() -> None:
        if not Path("fixed").exists():
            raise OSError("disk full")

    failing = sh("[ -e fixed ] || { echo 'error: no model'; exit 3; }", "failing")
    missing = Job("missing", ["nosuch"], tmp_path / "missing", {})
    without = Job("without", ["true"], tmp_path / "without", {})
    needing = function(lambda: None, "needing", needs=(failing,))
    jobs = [failing, missing, without, function(refuse, "refusing"), function(full, "full"), needing, sh(":", "other")]
    failed = run(jobs, tmp_path, parallel=2)
    assert sorted(failed) == [
        f"failing: failed with exit code 3: no model (see {failing.log_path})",
        "full: disk full",
        "missing: nosuch: No such file or directory; check the command",
        "refusing: no data; give some",
        f"without: ended without {without.output} (see {without.log_path})",
    ]
    assert set(failed) <= set(capsys.readouterr().err.splitlines())
    assert left(jobs) == jobs[:-1] and not Path("needing").exists()
    Path("fixed").touch()
    assert [one.split(":")[0] for one in run(jobs, tmp_path)] == ["missing", "without"]
    assert left(jobs) == [missing, without]


def test_finish_is_retried_alone_and_check_with_the_command(tmp_path):
    """So that a command does not resume from what its finish has half done."""
    calls: list[str] = []

    def fails_once(name: str) -> None:
        calls.append(name)
        if calls.count(name) == 1:
            raise InputError(name)

    job = sh("echo ran", "a", check=lambda: fails_once("check"), finish=lambda: fails_once("finish"))
    assert run([job], tmp_path) == ["a: check"] and states(job) == [None]
    assert run([job], tmp_path) == ["a: finish"] and states(job) == ["ran"]
    assert run([job], tmp_path) == [] and states(job) == ["done"]
    assert calls == ["check", "check", "finish", "finish"] and job.log_path.read_text() == "ran\nran\n"


# Commands


def test_a_command_may_insist_on_creating_the_folder_of_its_output(tmp_path):
    job = Job("made", ["sh", "-c", "mkdir new && touch new/out"], tmp_path / "new" / "out", {}, log=tmp_path / "log")
    assert run([job], tmp_path) == [] and is_done(job)


def test_a_command_has_its_folder_threads_log_and_record(tmp_path):
    Path("out.log").write_text("before\n")
    code = "import os, sys; print(os.getcwd(), os.environ['OMP_NUM_THREADS']); print('last', file=sys.stderr); exit(3)"
    Path("elsewhere").mkdir()
    jobs = [
        Job("python", ["python", "-c", code], tmp_path / "out", {}),
        Job("shell", ["sh", "-c", "command -v python"], tmp_path / "b", {}, log=tmp_path / "new" / "log"),
    ]
    run(jobs, tmp_path, threads=7, cwd=tmp_path / "elsewhere")
    assert Path("out.log").read_text() == f"before\n{tmp_path / 'elsewhere'} 7\nlast\n"
    assert Path("new/log").read_text() == f"{Path(sys.executable).parent / 'python'}\n"
    first, second = read_commands(tmp_path)
    assert (first["name"], first["exit_code"], first["log"], first["threads"]) == ("python", 3, "out.log", 7)
    assert (second["command"], second["exit_code"], second["log"]) == ("sh -c 'command -v python'", 0, "new/log")
    assert last_line(tmp_path / "out.log") == "last" and last_line(tmp_path / "none") == "no output"


def test_the_programs_are_those_of_this_python(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    commands = [["python", "a.py"], ["fairseq-train", "data", "--seed", 1], ["tn-fairseq", "look", "doctor"]]
    jobs = [Job(words[0], words, tmp_path / words[0], {}, log=tmp_path / "log") for words in commands]
    run(jobs, tmp_path)
    assert Path("log").read_text().splitlines() == [
        "a.py",
        "-m fairseq_cli.train data --seed 1",
        "-m tn_fairseq look doctor",
    ]


def test_commands_run_side_by_side_and_functions_next_to_them(tmp_path):
    """Two commands wait for each other and for the function, which waits for both."""
    one = sh(f"touch a; {WAIT.format('b')} {WAIT.format('called')}", "one")
    two = sh(f"touch b; {WAIT.format('a')} {WAIT.format('called')}", "two")

    def call() -> None:
        wait_until(lambda: Path("a").exists() and Path("b").exists())
        Path("called").touch()

    assert run([one, two, function(call, "three")], tmp_path, parallel=2) == []


@pytest.mark.parametrize("parallel, most", [(1, 0), (2, 1), (3, 2)])
def test_no_more_run_than_allowed_and_a_job_that_is_alone_waits_for_all(parallel, most, tmp_path, monkeypatch):
    """Counts what runs whenever a command starts."""
    Popen, processes, counts = subprocess.Popen, [], {}

    def popen(words, **options):
        counts[words[-1]] = sum(process.returncode is None for process in processes)
        processes.append(Popen(words, **options))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)

    def job(name: str, **options) -> Job:
        return Job(name, ["touch", name], tmp_path / name, {}, **options)

    alone = [job("alone1", alone=True), job("alone2", alone=True)]
    other = function(lambda: Path("order").write_text(" ".join(counts)), "function", needs=(alone[0],))
    assert run([*alone, *map(job, "abc"), other, job("d", needs=(alone[1],))], tmp_path, parallel) == []
    assert [*counts] == ["a", "b", "c", "alone1", "alone2", "d"]
    assert max(counts.values()) == counts["abc"[most]] == most
    assert counts["alone1"] == counts["alone2"] == 0
    assert Path("order").read_text() == "a b c alone1"


@pytest.mark.parametrize("named, expected", [(None, ["0", "1"]), ("3,GPU-5", ["3", "GPU-5"]), ("2", ["2", "2"])])
def test_each_command_gets_the_gpu_with_the_fewest_commands(named, expected, tmp_path, monkeypatch):
    """The second one ends, the third gets its GPU, and the last ones name how many they use."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2 if named is None else len(named.split(",")))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    see = "echo $CUDA_VISIBLE_DEVICES > {0}.gpu; "
    jobs = [
        sh(see.format("a") + WAIT.format("c"), "a"),
        sh(see.format("b"), "b"),
        sh(see.format("c") + WAIT.format("b"), "c"),
        Job("d", ["sh", "-c", see.format("d"), "--distributed-world-size", "2"], tmp_path / "d.gpu", {}),
        sh(": --distributed-world-size=2; " + see.format("e"), "e"),
    ]
    assert run(jobs, tmp_path, parallel=2) == []
    gpus = [Path(f"{name}.gpu").read_text().strip() for name in "abcde"]
    assert gpus == [*expected, expected[1], named or "", named or ""]


def test_progress_comes_while_the_command_runs_and_the_plugins_warnings_are_shown(tmp_path, monkeypatch, fairseq_train):
    """It waits for a file that is written when its record is there."""
    shown, messages = module._Runner._show, []

    def show(runner, job: Job, record: dict) -> None:
        shown(runner, job, record)
        messages.append((record["num_updates"], runner.parts[job], runner._time_left()))
        Path("seen").touch()

    monkeypatch.setattr(module._Runner, "_show", show)
    monkeypatch.setattr(module, "_print", messages.append)
    Path("a.log").write_text(f"{record(99)}\n")  # of an earlier sitting
    lines = ["x | WARNING | tn_fairseq.models | slow; use | this", "x | WARNING | fairseq.tasks | not ours"]
    script = (
        f"echo '{record(50)}'; {WAIT.format('seen')} echo '{lines[0]}'; echo '{lines[1]}'; printf '%s' '{record(75)}'"
    )
    job = train(script, "a", weight=100)
    job = Job(job.name, [*job.run, "--max-update", "100"], job.output, {}, weight=100)
    assert run([job, sh(":", "b", weight=100)], tmp_path) == []
    begin, warning, end, *finished = messages
    assert begin == ("50", 0.5, "") and warning == "a: slow; use | this"
    assert end[:2] == ("75", 0.75) and end[2].startswith("; about ") and end[2].endswith(" left")
    assert [one[:7] for one in finished] == ["[1/2] a", "[2/2] b"]


def test_times_in_words():
    assert [clock(seconds) for seconds in (0, 29, 31, 150, 3600, 3900)] == [
        *("0 s", "29 s", "1 min", "2 min", "1 h 00 min", "1 h 05 min")
    ]


# Interruptions


def interrupted(jobs: list[Job], number: int = signal.SIGINT, **options) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        run(jobs, Path.cwd(), **options)
    assert signal.getsignal(number) == before


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_commands_with_what_they_started(tmp_path, number):
    def call() -> None:
        wait_until(lambda: last_line(shell.log_path) != "no output" and Path("ready").exists())
        send(number)
        pytest.fail("not interrupted")

    shell, other = sh("sleep 300 & echo $!; wait", "shell"), sh("touch ready; sleep 300", "other")
    jobs = [shell, other, function(call, "function"), sh(":", "last")]
    interrupted(jobs, number, parallel=2)
    assert [one["exit_code"] for one in read_commands(tmp_path)] == [-signal.SIGTERM] * 2
    wait_until(lambda: not running(int(last_line(shell.log_path))))
    assert left(jobs) == jobs and states(*jobs) == [None] * 4


@pytest.mark.parametrize("moment", ["Popen", "_mark", "_read_marker", "_read", "parse_record", "write_text", "_print"])
def test_an_interruption_at_any_moment_leaves_a_consistent_state(tmp_path, monkeypatch, moment):
    """The signal arrives at the end of the first call of a function, of the second, and so on to the last."""
    place = subprocess if moment == "Popen" else module
    Popen, processes = subprocess.Popen, []
    calls, target = 0, 0
    before = signal.getsignal(signal.SIGINT)

    def call(*args, **options):
        nonlocal calls
        result = original(*args, **options)
        calls += 1
        if calls == target:
            send()
        return result

    def popen(*args, **options):
        processes.append(Popen(*args, **options))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    original = getattr(place, moment)
    monkeypatch.setattr(place, moment, call)
    for number in itertools.count(1):
        command = sh("echo", f"a{number}", finish=lambda: None)
        jobs = [command, function(lambda: None, f"b{number}", needs=(command,))]
        calls, target = 0, number
        try:
            assert run(jobs, tmp_path) == []
        except KeyboardInterrupt:
            target = 0
            assert all(process.returncode is not None for process in processes)
            assert run(jobs, tmp_path) == []
        target = 0
        assert left(jobs) == [] and signal.getsignal(signal.SIGINT) == before
        if calls < number:  # all jobs were done before
            break
    assert number > 1


def test_an_interrupted_finish_is_called_again_alone(tmp_path):
    def finish() -> None:
        with open("calls", "a") as file:
            file.write("called ")
        if Path("calls").read_text() == "called ":
            send()

    job = sh("echo ran", "a", finish=finish)
    interrupted([job])
    assert states(job) == ["ran"] and run([job], tmp_path) == []
    assert Path("calls").read_text() == "called called " and job.log_path.read_text() == "ran\n"


def test_what_runs_is_ended_if_a_function_has_a_defect(tmp_path):
    def call() -> None:
        wait_until(lambda: last_line(sleeping.log_path) == "ready")
        raise ZeroDivisionError

    sleeping = sh("echo ready; sleep 300", "sleeping")
    with pytest.raises(ZeroDivisionError):
        run([sleeping, function(call, "function")], tmp_path)
    assert read_commands(tmp_path)[0]["exit_code"] == -signal.SIGTERM


def a_program(folder: Path) -> list[str]:
    """A program with a job, a command that writes its process id to FOLDER/a.log."""
    return [
        *("python", "-c"),
        "import sys; sys.argv = ['tn-fairseq']; "  # so that the plugin is not registered, which takes seconds
        "from pathlib import Path; from tn_fairseq.tools.jobs import Job, run; "
        f"folder = Path({str(folder)!r}); "
        "run([Job('a', ['sh', '-c', 'echo $$; exec sleep 300'], folder / 'a', {})], folder)",
    ]


def test_a_command_with_jobs_of_its_own_ends_them(tmp_path):
    log = tmp_path / "inner" / "a.log"

    def call() -> None:
        wait_until(lambda: last_line(log) != "no output")
        send(signal.SIGTERM)

    interrupted([Job("outer", a_program(tmp_path / "inner"), tmp_path / "b", {}), function(call, "c")], signal.SIGTERM)
    assert read_commands(tmp_path)[0]["exit_code"] == -signal.SIGINT  # Python's own end after KeyboardInterrupt
    assert not running(int(last_line(log)))


def test_a_killed_program_leaves_its_folder_locked_until_its_command_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0)
    log = tmp_path / "a.log"
    program = subprocess.Popen([sys.executable, *a_program(tmp_path)[1:]])
    wait_until(lambda: last_line(log) != "no output")
    job = sh(":", "b")
    assert refused(run, [job], tmp_path).startswith(f"{tmp_path}: ")  # two in one folder
    program.kill()
    program.wait()
    assert refused(run, [job], tmp_path).startswith(f"{tmp_path}: ") and not Path("b").exists()
    os.kill(int(last_line(log)), signal.SIGTERM)
    monkeypatch.setattr(module, "PATIENCE", 20)
    assert run([job], tmp_path) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    Path("file").touch()
    assert refused(run, [sh(":", "a")], tmp_path / "file") == (
        f"{tmp_path / 'file'}: File exists; name another folder with --output"
    )
