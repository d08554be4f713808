#!/usr/bin/env python3
"""Pictures of an analysis for a web page: its cases as a browser shows them, and its rates over training.

    python examples/pictures.py demo/false-negatives --output examples/pictures

reads the output folder of ``tn-fairseq look analysis``, and writes cases.png and, if there are checkpoints of several
updates, training.png, each smaller than 300 KB. cases.png shows the head and the first cases of the page, without its
table and its filters. Chromium must be installed.
"""

import argparse
import io
import logging
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import read_bytes, read_text, write_atomically
from tn_fairseq.tools.look.analysis import CASE_PAGE, over_training
from tn_fairseq.tools.results import plot
from tn_fairseq.tools.results.report import TABLE
from tn_fairseq.tools.results.table import read_table

if TYPE_CHECKING:
    from PIL.Image import Image

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT = 120  # seconds
# lengths in CSS pixels
WIDTH = 800  # of the page; a README on GitHub is about as wide
HEAD, CASE = 800, 800  # heights that the head and a case do not exceed, unless their texts are very long
END = 64  # empty space at the end of the page
MARGIN = 16  # around the contents of a picture
SCALE = 2  # pixels of the picture in each CSS pixel, so that its text is sharp
LIMIT = 300_000  # bytes
REMEDY = "give the output folder of tn-fairseq look analysis"


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("analysis", type=Path, help="output folder of tn-fairseq look analysis")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for the pictures")
    parser.add_argument("--cases", type=int, default=2, metavar="N", help="number of cases (default: %(default)s)")
    parser.add_argument(
        "--view",
        default="",
        metavar="FILTERS",
        help="which cases: what the page's address has after #, such as 'word=stay&show=all' (default: all corrected)",
    )
    args = parser.parse_args(argv)
    if args.cases < 1:
        raise InputError(f"--cases {args.cases}: give 1 or more")
    logging.getLogger("PIL").setLevel(logging.WARNING)  # fairseq enables debug messages of all packages
    drawn = training(args.analysis / TABLE)
    write(photograph(args.analysis / CASE_PAGE, args.view, args.cases), args.output / "cases.png")
    if drawn is not None:
        write(drawn, args.output / "training.png")


def training(table: Path) -> "Image | None":
    """The rates over training; None if all checkpoints have the same number of updates."""
    curves = over_training(read_table(table)[0])
    if not curves:
        return None
    with plot.drawing((2 * plot.WIDTH, 3.2)) as figure, tempfile.TemporaryDirectory() as folder:
        for axis, (label, lines) in zip(figure.subplots(1, len(curves)), curves.items()):
            plot.draw_lines(axis, lines, list(lines), label, points=True)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plot.save(figure, Path(folder, "training.png"))
        return opened(Path(folder, "training.png"))


def photograph(page: Path, view: str, cases: int) -> "Image":
    """The head and the first cases of the page as a browser shows them."""
    # the policy allows no styles but the page's own
    text, policies = re.subn('<meta http-equiv="Content-Security-Policy"[^>]*>', "", read_text(page, REMEDY))
    if not policies or '<script type="application/json" id="data">' not in text:
        raise InputError(f"{page}: not a page of cases; {REMEDY}")
    hidden = f"#rates, #checkpoints, #losses, #cases-title, #filters, #clear, #more, .case:nth-of-type(n + {cases + 1})"
    text = text.replace("</head>", f"<style>{hidden} {{ display: none; }}</style></head>", 1)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InputError("no browser found; install Chromium, for example with: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        copy, picture = Path(folder, CASE_PAGE), Path(folder, "page.png")
        copy.write_text(text, encoding="utf-8")
        command = [
            *[browser, "--headless", f"--user-data-dir={folder}/profile", f"--screenshot={picture}"],
            *["--no-sandbox", "--disable-gpu"],  # containers have neither; the page is ours and loads nothing
            *["--hide-scrollbars", "--disable-lcd-text", f"--force-device-scale-factor={SCALE}"],
            *[f"--window-size={WIDTH},{HEAD + cases * CASE}", f"{copy.as_uri()}#{view}"],
        ]
        try:
            # no pipes: processes that outlive the browser would keep them open, and the timeout would not end the wait
            run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT)
            reason = f"exit code {run.returncode}"
        except subprocess.TimeoutExpired:
            reason = f"it did not end within {TIMEOUT} seconds"
        if not picture.exists():
            raise InputError(f"{browser} made no picture of {page}: {reason}")
        image = opened(picture)
    if contents(image)[3] > image.height - END * SCALE:
        raise InputError(f"{page}: too long for a picture; give a smaller number of --cases, or another --view")
    return image


def opened(path: Path) -> "Image":
    from PIL import Image

    content = read_bytes(path, REMEDY)
    try:
        image = Image.open(io.BytesIO(content)).convert("RGB")
    except (OSError, SyntaxError, ValueError):  # as PIL reports damage
        raise InputError(f"{path}: not a picture; {REMEDY}") from None
    if contents(image) is None:
        raise InputError(f"{path}: an empty picture; {REMEDY}")
    return image


def contents(image: "Image") -> tuple[int, int, int, int] | None:
    """The box (left, top, right, bottom) of what differs from the upper left pixel."""
    from PIL import Image, ImageChops

    return ImageChops.difference(image, Image.new("RGB", image.size, image.getpixel((0, 0)))).getbbox()


def write(image: "Image", path: Path) -> None:
    """Write the picture with equal margins, and as many colors as fit into the limit."""
    from PIL import ImageOps

    image = ImageOps.expand(image.crop(contents(image)), MARGIN * SCALE, image.getpixel((0, 0)))
    for colors in (256, 128, 64, 32, 16):
        buffer = io.BytesIO()
        image.quantize(colors).save(buffer, "PNG", optimize=True)
        if buffer.tell() < LIMIT:
            break
    else:
        raise InputError(f"{path}: larger than {LIMIT // 1000} KB; give a smaller number of --cases")
    with write_atomically(path) as temporary:
        temporary.write_bytes(buffer.getvalue())
    print(f"{path}: {image.width} x {image.height}, {buffer.tell() / 1000:.0f} KB")


if __name__ == "__main__":
    main()
