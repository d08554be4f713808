"""Plot the table of docs/findings.md: the differences for the same number of updates, with their intervals.

python examples/study/findings.py --output examples/pictures/findings.svg
"""

import argparse
import re
from pathlib import Path

import matplotlib.pyplot as plt

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, metavar="FILE", help="the picture, such as findings.svg")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| ([\d,]+) \| \**(\S+) ± ([\d.]+)", PAGE.read_text("utf-8"), re.MULTILINE)
    labels = [f"{objective.replace('*', '')}\n{student}, {updates} updates" for objective, student, updates, *_ in rows]
    differences = [float(difference.replace("−", "-")) for *_, difference, _ in rows]
    intervals = [float(interval) for *_, interval in rows]
    plt.rcParams |= {"svg.hashsalt": "findings", "svg.fonttype": "none", "font.size": 8}
    figure, axes = plt.subplots(figsize=(7, 0.42 * len(rows) + 0.6), layout="constrained")
    axes.axvline(0, color="gray", linewidth=1)
    axes.errorbar(differences, range(len(rows)), xerr=intervals, fmt="o", color="tab:blue", capsize=3)
    axes.set_yticks(range(len(rows)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("accuracy minus that of plain masked LM, in points")
    figure.savefig(parser.parse_args().output, metadata={"Date": None})


if __name__ == "__main__":
    main()
