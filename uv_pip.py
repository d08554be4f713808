"""Run ``uv pip install`` with the arguments of this script, and with pip's own settings: indexes, constraints, ...

uv does not read pip's configuration, in which a machine may name its package index, or one with torch for CPUs. The
arguments are those of pip. Settings of uv (``UV_INDEX``, ...) replace pip's.
"""

import ast
import os
import subprocess
import sys

# pip's option -> uv's variable, and what separates several values there
VARIABLES = {
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


def settings(listing: str) -> dict[str, str]:
    """The variables of uv that correspond to the output of ``pip config list``."""
    found = {}
    lines = [line.partition("=") for line in listing.splitlines()]
    for section in ("global", "install", ":env:"):  # later ones replace earlier ones
        for key, _, value in lines:
            option = key.removeprefix(f"{section}.")
            if option != key and option in VARIABLES:
                variable, separator = VARIABLES[option]
                found[variable] = separator.join(ast.literal_eval(value).split())
    # pip takes the newest version in all indexes
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **found}


if __name__ == "__main__":
    listing = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
    variables = settings(listing)
    if "--require-hashes" in sys.argv:  # then uv wants a hash for each constraint as well
        variables.pop("UV_CONSTRAINT", None)
    command = ["uv", "pip", "install", "--python", sys.executable, *sys.argv[1:]]
    sys.exit(subprocess.call(command, env={**variables, **os.environ}))
