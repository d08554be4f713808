"""What everything else uses: the synonym table, masks and draws, masked predictions, dictionaries, files, errors."""

from pathlib import Path

PLUGIN = Path(__file__).absolute().parents[1]  # for --user-dir
