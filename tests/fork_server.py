"""Start Python programs quickly by forking a process that has already imported torch and fairseq.

Tests call commands in their own process, but the commands that fine-tune, study and benchmark start ``fairseq-train``,
and each of these programs would import torch and fairseq for several seconds. Tests of kills, of workers, of standard
error and of exit codes also need processes.

``start`` replaces ``subprocess.Popen``. It passes a script, a console script or ``python -m module`` to a server, which
has imported third-party modules and read WordNet, but not the plugin or ``fairseq_cli``. The server forks a process,
which takes over the arguments, folder, environment and files, and exits as Python does, but does not free its objects,
because this would copy all memory that it shares with the server. Programs that a command starts are also served: its
PATH begins with a folder of small scripts that pass them to the server, and its ``sys.executable`` is such a script.

All others, such as ``python -c``, get a new process, as do commands whose environment differs in a variable that is
read at the start, and all with ``fresh=True``. A served command does not show the warnings of imports, string hashes
are the same in all commands of a server, and signals and limits set for the small scripts do not reach it.
"""

import atexit
import gc
import json
import logging
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.util import _exit_function
from pathlib import Path
from types import ModuleType
from typing import IO

# importing these does not change what the plugin finds; fairseq imports torch, numpy, omegaconf and hydra
MODULES = [
    "fairseq.checkpoint_utils",
    "fairseq.data.data_utils_fast",
    "fairseq.data.iterators",
    "fairseq.data.token_block_utils_fast",
    "fairseq.model_parallel.megatron_trainer",
    "fairseq.options",
    "fairseq.quantization_utils",
    "fairseq.tasks",
    "fairseq.trainer",
    "nltk",
    "safetensors.torch",
    "sentencepiece",
    "tokenizers",
    "torch._dynamo",  # imported in the first step of an optimizer
]
# imported by half of the commands, and slowly; an environment may lack them
MORE_MODULES = [
    "lemminflect",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "matplotlib.style",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "transformers.models.electra.modeling_electra",
]
# these set up logging before they import fairseq, which would set it up differently
LOGGING_FIRST = ("fairseq-train", "fairseq_cli.train")
SCRIPTS = ["fairseq-hydra-train", "fairseq-preprocess", "fairseq-train", "fairseq-validate", "tn-fairseq", "torchrun"]
# variables that are read once, except those that libraries set, such as KMP_INIT_AT_FORK, or MKL_NUM_THREADS by Dask
START = ("PYTHON", "LD_", "LC_", "LANG", "OMP_", "TORCH_LOGS", "CUDA_", "NLTK_DATA", "HOME")
START += ("HF_", "TRANSFORMERS_", "MPL", "XDG_")
VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONWARNINGS": "ignore",
}  # of the server and its programs
ADDRESS = "server"  # the socket in a folder of scripts
BIN = Path(sys.executable).parent


class Served:
    """A command that the server runs; ``pid``, ``wait`` and ``returncode`` are those of ``subprocess.Popen``."""

    def __init__(self, answers: IO[str], pid: int):
        self.pid = pid
        self.returncode: int | None = None
        self._answers = answers

    def wait(self) -> int:
        """Wait for the command and return its exit code, or minus the signal that killed it."""
        if self.returncode is None:
            self.returncode = int(self._answers.readline())
            self._answers.close()
        return self.returncode


def start(
    words: list[str],
    *,
    cwd: Path | None = None,
    env: dict[str, str],
    stdout: IO | int,
    stderr: IO | int,
    start_new_session: bool = False,
    fresh: bool = False,
) -> subprocess.Popen | Served:
    """Start a command without input; stdout and stderr are open files, or stderr is ``subprocess.STDOUT``."""
    if not fresh:
        address, _ = _server()
        env = {**env, "PATH": os.pathsep.join([str(address.parent), env["PATH"]])}
        with open(os.devnull) as stdin:
            files = [file if isinstance(file, int) else file.fileno() for file in (stdin, stdout, stderr)]
            files[2] = files[1] if files[2] == subprocess.STDOUT else files[2]
            served = ask(address, words, str(cwd or Path.cwd()), env, files, start_new_session)
        if served is not None:
            return served
    options = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": stderr}
    return subprocess.Popen(words, cwd=cwd, env=env, start_new_session=start_new_session, **options)


def served_folder() -> Path:
    """The folder of the small scripts that pass programs to the server of this process."""
    return _server()[0].parent


def ask(
    address: Path, words: list[str], cwd: str, env: dict[str, str], files: list[int], new_session: bool = False
) -> Served | None:
    """Make the server at an address run a command with these three standard files; None if it cannot."""
    program = _python_program(words, env["PATH"])
    if program is None:
        return None
    request = {**program, "cwd": cwd, "env": env, "new_session": new_session, "scripts": str(address.parent)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(address))
        socket.send_fds(connection, [b"+"], files)
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        answers = connection.makefile("r")
    pid = int(answers.readline())
    if not pid:
        answers.close()
        return None
    return Served(answers, pid)


def _python_program(words: list[str], path: str) -> dict | None:
    """The file or module that this environment's Python should run, with its arguments; None for anything else."""
    command, *arguments = words
    found = Path(shutil.which(command, path=path) or "")
    ours = found.parent == BIN or (found.parent / ADDRESS).exists()
    if command == sys.executable or (command == "python" and ours):
        if len(arguments) > 1 and arguments[0] == "-m":
            return {"module": arguments[1], "argv": arguments[1:]}
        return {"file": arguments[0], "argv": arguments} if arguments and arguments[0].endswith(".py") else None
    if found.name in SCRIPTS and ours:
        script = str(BIN / found.name)
        return {"file": script, "argv": [script, *arguments]}
    return None


@cache
def _server() -> tuple[Path, subprocess.Popen]:
    """The server of this process, which exits with it; its folder holds the scripts that pass programs to it."""
    folder = Path(tempfile.mkdtemp(prefix="served-"))
    atexit.register(shutil.rmtree, folder)
    address = folder / ADDRESS
    for name, program in [("python", sys.executable), *((name, BIN / name) for name in SCRIPTS)]:
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {__file__} {address} {program} "$@"\n')
        script.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(64)
        server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            stdin=subprocess.PIPE,  # closed when this process exits
            env={**os.environ, **VARIABLES},
            pass_fds=[listening.fileno()],
        )
    return address, server


def hand_over(address: str, *words: str) -> None:
    """Called by the small scripts: let the server run a program and exit as it does, or else exec the program."""
    served = ask(Path(address), list(words), os.getcwd(), dict(os.environ), [0, 1, 2])
    if served is None:
        os.execv(words[0], words)
    code = served.wait()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


# In the server


def serve(listening: socket.socket) -> dict:
    """Fork a process for each command and return its request there; exits when standard input is closed."""
    while True:
        ready, _, _ = select.select([listening, 0], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return _begin(connection)
        connection.close()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def read_wordnet() -> None:
    """Read NLTK's WordNet, if it is there."""
    wordnet = import_module("nltk.corpus").wordnet
    try:
        wordnet.ensure_loaded()
    except LookupError:
        return
    wordnet._data_file_map.clear()  # processes would share the open files, and their positions


def read_inflections() -> None:
    """Read the files of LemmInflect, if it is there."""
    if lemminflect := sys.modules.get("lemminflect"):
        lemminflect.getAllLemmas("word")
        lemminflect.getAllInflections("word")


def _begin(connection: socket.socket) -> dict:
    """In a fork of the server: read a command, fork the process that runs it, send its pid and its exit code."""
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("r") as file:
        request = json.load(file)
    if _at_start(request["env"]) != _at_start(os.environ):
        connection.sendall(b"0\n")
        os._exit(0)
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        connection.sendall(f"{pid}\n".encode())
        status = os.waitpid(pid, 0)[1]
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    if request["new_session"]:
        os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    return request


def _at_start(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(START)}


def run(request: dict) -> None:
    """Run a command's file or module as Python does, and end the process without freeing its objects."""
    code = 0

    def end() -> None:
        try:
            for file in (sys.__stdout__, sys.stdout, sys.stderr):  # the first, if the program replaced it
                if not file.closed:
                    file.flush()
        except OSError:
            return  # Python reports it and exits with its own code
        os._exit(code)

    atexit.register(end)  # the first that is registered is called last
    atexit.register(_exit_function)  # the server registered it earlier; it ends daemonic processes of the command
    try:
        _run(request)
    except SystemExit as stop:
        code = stop.code & 0xFF if isinstance(stop.code, int) else int(stop.code is not None)
        raise
    except KeyboardInterrupt:
        atexit.unregister(end)  # Python kills itself with the signal
        raise
    except BaseException:
        code = 1
        raise


def _run(request: dict) -> None:
    # as a fresh import would; Python's own random reseeds itself in a fork
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].default_generator.seed()
    sys.argv = request["argv"]
    sys.executable = str(Path(request["scripts"], "python"))
    if Path(sys.argv[0]).name in LOGGING_FIRST:
        logging.root.handlers.clear()
        logging.root.setLevel(logging.WARNING)
    if "module" in request:
        sys.path[0] = request["cwd"]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    else:
        file = Path(request["file"]).absolute()
        sys.path[0] = str(file.resolve().parent)
        main = sys.modules["__main__"] = ModuleType("__main__")  # runpy.run_path would change sys.argv
        main.__file__ = str(file)
        exec(compile(file.read_bytes(), file, "exec"), main.__dict__)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        hand_over(*sys.argv[1:])
    for name in MODULES:
        import_module(name)
    for name in MORE_MODULES:
        with suppress(ImportError):
            import_module(name)
    read_wordnet()
    read_inflections()
    gc.collect()
    gc.freeze()  # otherwise, the first collection in each process would copy the memory shared with the server
    run(serve(socket.socket(fileno=int(sys.argv[1]))))
