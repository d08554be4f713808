"""Print the plugin's folder and nothing else: ``fairseq-train --user-dir "$(python -m tn_fairseq)"``."""

from pathlib import Path

if __name__ == "__main__":
    print(Path(__file__).absolute().parent)
