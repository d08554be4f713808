"""Install this package, and all that the commands of the Makefile need, into a virtual environment.

    python3 install.py .venv                what make runs
    python3 install.py .venv --torch cpu    torch from PyTorch's own index: cpu, cu130, ...

Uses uv if it is there, which is several times as fast as pip. This file runs on every Python 3, because an old one must
say what to do instead.
"""

import argparse
import ast
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request

# fairseq cannot be imported on Python 3.14, on which str(Optional[str]) is another text
OLDEST, NEWEST, WITH_UV = (3, 11), (3, 13), "3.12"
DEBIAN_WORDNET = ("wordnet-base", "wordnet-sense-index")
VENV = "venv module"
PYTORCH = "https://download.pytorch.org/whl/"

# pip's option -> uv's variable, and what separates several values there
UV_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "no-index": ("UV_NO_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("venv", help="the folder of the environment")
    parser.add_argument("--torch", metavar="NAME", help="take torch from " + PYTORCH + "NAME: cpu, cu130, ...")
    options = parser.parse_args(argv)
    if options.torch and not re.match(r"(cpu|xpu|(cu|rocm)[\d.]+)$", options.torch):
        stop(f"TORCH={options.torch}: not a folder of PyTorch's index; give cpu, or the version of CUDA, such as cu130")
    python = make_environment(options.venv)
    built = builds_fairseq(version_of(python))
    more = ["--extra-index-url", PYTORCH + options.torch] if options.torch else []
    constraint = ["--constraint", "constraints.txt"]
    say("[1/4] torch and numpy: " + size_of_torch(options.torch))
    patience = retries(PYTORCH + options.torch + "/") if options.torch else {}
    install(python, [*more, *constraint, "torch", "numpy", "cython", "setuptools"], **patience)
    # fairseq is built against the torch and the numpy above. It requires torchaudio, but uses it for speech only.
    how = "11 MB of source, built in about 3 minutes, once on this machine" if built else "20 MB"
    say("[2/4] fairseq: " + how)
    install(python, ["--no-build-isolation", "--no-deps", "--require-hashes", "--requirement", "fairseq.txt"])
    say("[3/4] this package and all that its extras and tests need: about 250 MB, 700 MB on disk")
    # without the other index, because pip would ask it for each of a hundred packages
    install(python, [*constraint, "--editable", ".[fairseq,test]"])
    # torchaudio from PyPI needs CUDA. With a CPU torch it cannot be imported, and then transformers cannot import its
    # models either.
    if subprocess.call([python, "-c", "import torchaudio"], stderr=subprocess.DEVNULL):
        run([python, "-m", "pip", "--disable-pip-version-check", "uninstall", "--quiet", "--yes", "torchaudio"])
    say("[4/4] WordNet: 11 MB, 40 MB on disk")
    fetch_wordnet(python)


def say(line):
    print(line, flush=True)


def stop(line):
    sys.exit("error: " + line)


def run(command, **options):
    """Run a command, and end with its exit code if it fails."""
    code = subprocess.call(command, **options)
    if code:
        sys.stderr.write("error: this step failed, see above; if the network was the reason, type the same again\n")
        sys.exit(code)


def version_of(python):
    """The version of a Python, such as (3, 12)."""
    code = "import sys; print(sys.version_info[0], sys.version_info[1])"
    return tuple(map(int, subprocess.check_output([python, "-c", code]).split()))


def builds_fairseq(version):
    """Whether fairseq has no wheel for this system; fairseq.txt says for which it has one."""
    return not (version < (3, 13) and sys.platform == "linux" and platform.machine() == "x86_64")


def make_environment(venv):
    """Make the environment unless it exists, and return its Python."""
    python = os.path.join(venv, "bin", "python")
    ours, uv = sys.version_info[:2], shutil.which("uv")
    if os.path.exists(python) and subprocess.call([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL) == 0:
        if not OLDEST <= version_of(python) <= NEWEST:
            stop(f"{venv} is an environment of another Python; delete it, and try again")
        return python
    lacking = lacks(ours)
    fits = OLDEST <= ours <= NEWEST
    if fits and not lacking:
        run([sys.executable, "-m", "venv", venv])
    elif uv:
        version = WITH_UV
        if fits and [what for what, _, _ in lacking] == [VENV]:
            version = sys.executable  # uv makes environments without Python's module
        else:
            say(f"[0/4] Python {WITH_UV} from uv, because {explain(ours, lacking)}: 30 MB, 100 MB on disk")
        run([uv, "venv", "--quiet", "--clear", "--seed", "--python", version, venv], env=variables_of_uv())
    elif not fits:
        stop(
            f"{explain(ours, lacking)}; install Python 3.12 and type make PYTHON=python3.12, or install uv, with which "
            "make gets one: https://docs.astral.sh/uv"
        )
    else:
        _, debian, fedora = zip(*lacking)
        macos = ", xcode-select --install (macOS)" if sys.platform == "darwin" else ""
        stop(
            f"{explain(ours, lacking)}; install it: apt-get install {' '.join(debian)} (Debian, Ubuntu), "
            f"dnf install {' '.join(fedora)} (Fedora){macos}; or install uv: https://docs.astral.sh/uv"
        )
    return python


def explain(version, lacking):
    """Why no environment can be made with this Python."""
    if not OLDEST <= version <= NEWEST:
        return f"{sys.executable} is Python {version[0]}.{version[1]}, and fairseq needs 3.11 to 3.13"
    return "this machine has no " + " and no ".join(what for what, _, _ in lacking)


def lacks(version):
    """What a machine needs and does not have: its name, Debian's package and Fedora's."""
    found = []
    if importlib.util.find_spec("ensurepip") is None:
        found.append((VENV, "python3-venv", "python3"))
    if builds_fairseq(version):
        if not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
            found.append(("C++ compiler", "g++", "gcc-c++"))
        if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
            found.append(("Python.h", "python3-dev", "python3-devel"))
    return found


def size_of_torch(index):
    """What the step of torch downloads."""
    if index == "cpu":
        return "200 MB, 800 MB on disk"
    if index or sys.platform != "linux" or os.path.exists("/proc/driver/nvidia"):
        return "2 GB with CUDA, 4.7 GB on disk"
    return (
        "2 GB with CUDA, 4.7 GB on disk, unless your package index has a smaller one. This machine has no NVIDIA GPU: "
        "for the small one (200 MB, 800 MB on disk), stop, and type make install TORCH=cpu"
    )


def retries(index):
    """Settings without retries if an index cannot be reached, because pip would retry it for each of 30 packages."""
    try:
        urllib.request.urlopen(index, timeout=30).close()
    except OSError as error:
        reason = getattr(error, "reason", error)
        say(
            f"      {index} cannot be reached ({reason}), so torch comes from your package index: perhaps with CUDA, "
            "2 GB, 4.7 GB on disk. To stop, press Ctrl-C"
        )
        return {"PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0"}
    return {}


def install(python, arguments, **more):
    """Run ``pip install`` with uv, or with pip, and ``more`` variables of the environment."""
    uv = shutil.which("uv")
    if not uv:
        command = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments]
        run(command, env={**os.environ, **more})
        return
    variables = variables_of_uv(python)
    if "--require-hashes" in arguments:  # then uv wants a hash for each constraint as well
        variables.pop("UV_CONSTRAINT", None)
    run([uv, "pip", "install", "--quiet", "--python", python, *arguments], env={**variables, **more})


def variables_of_uv(python=None):
    """The environment of uv. It has pip's settings, which uv does not read, but settings of uv replace them."""
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # pip takes the newest version in all indexes
    if python:
        found.update(settings(subprocess.check_output([python, "-m", "pip", "config", "list"]).decode()))
    cache = os.environ.get("UV_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")
    if not os.access(cache, os.W_OK):  # pip works without a cache in this case, and says so
        found["UV_NO_CACHE"] = "1"
    found.update(os.environ)
    return found


def settings(listing):
    """The variables of uv that correspond to the output of ``pip config list``."""
    found = {}
    lines = [line.partition("=") for line in listing.splitlines()]
    for section in ("global", "install", ":env:"):  # later ones replace earlier ones
        for key, _, value in lines:
            option = key[len(section) + 1 :]
            if key.startswith(section + ".") and option in UV_VARIABLES:
                variable, separator = UV_VARIABLES[option]
                found[variable] = separator.join(ast.literal_eval(value).split())
    return found


def fetch_wordnet(python):
    """Get WordNet with NLTK's downloader, and if that fails, from Debian's packages, which are not installed."""
    fetch = [python, "-W", "ignore", "-m", "tn_fairseq", "synonyms", "fetch-wordnet"]
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        run(fetch)
        return
    finished = subprocess.run(fetch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = finished.stdout.decode().strip()
    last = output.splitlines()[-1] if output else "error: the download of WordNet was killed; run make again"
    if finished.returncode and not last.startswith("error: "):  # something else than a failed download
        sys.exit(output)
    if finished.returncode == 0:
        say(last)
        return
    say("WordNet: NLTK cannot download it, so apt-get downloads Debian's packages of it; they are not installed")
    with tempfile.TemporaryDirectory() as folder:
        files = debian_files(folder)
        if files is None:
            sys.exit(last)
        run([*fetch, "--from", files])


def debian_files(folder):
    """Download Debian's packages of WordNet, unpack them into a folder, and return where the files are, or None.

    Needs neither root nor the system's lists of packages, and changes nothing outside of the folder.
    """
    options = ["-qq", "-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
    options += ["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none"]
    for path in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, path))
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    commands = [["apt-get", *options, "update"], ["apt-get", *options, "download", *DEBIAN_WORDNET]]
    if any(subprocess.call(command, **quiet) for command in commands):
        return None
    for name in os.listdir(folder):
        if name.endswith(".deb") and subprocess.call(["dpkg-deb", "-x", name, "files"], **quiet):
            return None
    return os.path.join(folder, "files", "usr", "share", "wordnet")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("interrupted; type the same again to resume")
