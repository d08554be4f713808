"""A command forked from the server behaves like one in a new process."""

import json
import os
import signal
import subprocess
import sys

import pytest
from engine_checks import running
from helpers import run_command, start_command

PROBE = """
import atexit, json, multiprocessing, os, random, signal, subprocess, sys, threading
heavy = "torch" in sys.modules
import numpy, torch
main = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv, "file": __file__, "main": main.__file__, "name": __name__,
    "path": sys.path[0], "cwd": os.getcwd(),
    "input": sys.stdin.read(), "environment": dict(os.environ), "encoding": sys.stdout.encoding,
    "parent": multiprocessing.parent_process() is None, "threads": [threading.active_count(), torch.get_num_threads()],
    "ours": [name for name in sys.modules if name.startswith(("tn_fairseq", "fairseq_cli"))],
}))
print(json.dumps({"heavy": heavy, "random": [random.random(), numpy.random.rand(), torch.rand(1).item()]}))
atexit.register(print, "atexit")
beside = multiprocessing.get_context("fork").Process(target=signal.pause, daemon=True)
beside.start()  # Python ends it
print(beside.pid)
def late():
    threading.main_thread().join()
    print("thread")
threading.Thread(target=late).start()
"""


def test_what_a_program_sees_and_how_it_exits(tmp_path, monkeypatch):
    monkeypatch.setenv("MORE", "yes")
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "link.py").symlink_to("probe.py")
    (tmp_path / "sub").mkdir()
    runs = [
        run_command(sys.executable, "../link.py", "a b", cwd=tmp_path / "sub", fresh=fresh)
        for fresh in (False, False, True)
    ]
    seen, own, ends = [], [], []
    for run in runs:
        assert run.code == 0 and not run.stderr, run.output
        first, second, beside, *rest = run.stdout.splitlines()
        assert not running(int(beside))
        seen.append(json.loads(first))
        own.append(json.loads(second))
        ends.append(rest)
    assert ends == [["thread", "atexit"]] * 3
    served, again, fresh = seen
    assert served["environment"].pop("PATH").endswith(fresh["environment"].pop("PATH"))
    again["environment"].pop("PATH")
    assert served == again == fresh and fresh["environment"]["MORE"] == "yes" and not fresh["ours"]
    assert [values["heavy"] for values in own] == [True, True, False]
    assert len({number for values in own for number in values["random"]}) == 9


@pytest.mark.parametrize(
    "end",
    [
        *["sys.exit(-1)", "sys.exit('error: no')", "1 / 0", "raise KeyboardInterrupt", "os.kill(os.getpid(), 9)"],
        *["sys.stdout.close()", "import atexit; atexit.register(sys.exit, 3)"],
        "sys.stdout = open('/dev/full', 'w'); print(1)",
    ],
)
def test_exit_codes_and_final_output(end, tmp_path):
    (tmp_path / "end.py").write_text(f"import os, sys\nsys.stdout.write('before ')\n{end}\n")
    served, fresh = (run_command(sys.executable, tmp_path / "end.py", fresh=fresh) for fresh in (False, True))
    assert served.served and (served.code, served.stdout) == (fresh.code, fresh.stdout)
    # tracebacks also contain lines of the server
    assert served.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]


def test_programs_of_a_command_are_also_served(tmp_path):
    (tmp_path / "heavy.py").write_text("import sys\nprint('torch' in sys.modules, flush=True)\nsys.exit(5)\n")
    outer = "import subprocess, sys\nprint(subprocess.call([sys.executable, 'heavy.py']))\n"
    (tmp_path / "outer.py").write_text(outer)
    assert run_command(sys.executable, "outer.py", cwd=tmp_path).stdout == "True\n5\n"
    assert run_command(sys.executable, "outer.py", cwd=tmp_path, fresh=True).stdout == "False\n5\n"


def test_variables_that_python_reads_at_startup_need_a_new_process(tmp_path, monkeypatch):
    (tmp_path / "heavy.py").write_text("import sys\nprint('torch' in sys.modules, sys.flags.utf8_mode)\n")
    assert run_command(sys.executable, tmp_path / "heavy.py").stdout == "True 0\n"
    monkeypatch.setenv("PYTHONUTF8", "1")
    assert run_command(sys.executable, tmp_path / "heavy.py").stdout == "False 1\n"


def test_a_session_is_killed_with_all_of_its_processes(tmp_path):
    (tmp_path / "forks.py").write_text("import os, signal\nos.fork()\nos.write(1, b'x\\n')\nsignal.pause()\n")
    reading, writing = os.pipe()
    command = [sys.executable, tmp_path / "forks.py"]
    process = start_command(*command, stdout=writing, stderr=subprocess.STDOUT, start_new_session=True)
    os.close(writing)
    with open(reading) as output:
        assert output.readline() == output.readline() == "x\n"
        os.killpg(process.pid, signal.SIGKILL)
        assert output.read() == ""  # both are gone
    assert process.wait() == -signal.SIGKILL
