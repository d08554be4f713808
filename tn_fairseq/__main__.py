"""Print the plugin's folder, or check the installation.

fairseq-train --user-dir "$(python -m tn_fairseq)"
python -m tn_fairseq doctor

Other commands:

python -m tn_fairseq.preprocessing   prepare text, synonym tables, GLUE, SQuAD and attacks
python -m tn_fairseq.analysis        find false negatives
python -m tn_fairseq.evaluation      fine-tune on GLUE and SQuAD, and measure
python -m tn_fairseq.huggingface     import and export models
"""

import sys
from pathlib import Path

from .doctor import main as doctor


def main(words: list[str]) -> None:
    """Run a command; without one, print the folder and nothing else."""
    if not words:
        print(Path(__file__).absolute().parent)
    elif words[0] == "doctor":
        doctor(words[1:])
    elif words[0] in ("-h", "--help"):
        print(__doc__)
    else:
        sys.exit(f"error: {words[0]!r} is not a command; give doctor, or read --help for the other commands")


if __name__ == "__main__":
    main(sys.argv[1:])
