"""Export a checkpoint of fairseq-train to folders for transformers.

    tn-fairseq exchange export CHECKPOINT.pt --output DIR [--half]

Every tensor is copied bit for bit, except with --half. Writes DIR/discriminator and DIR/generator for ELECTRA, or DIR
for BERT.
"""

from dataclasses import dataclass
from pathlib import Path

from ..core.options import option
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What to export, and where to."""

    checkpoint: Path = option("of an electra_* or bert_* model", metavar="CHECKPOINT.pt", positional=True)
    output: Path = option("folder to write", metavar="DIR")
    data: Path | None = option(
        "folder with dict.txt and tokenizer/ (default: as in training)", default=None, metavar="DATA_BIN"
    )
    half: bool = option("store the weights as float16: half of the size, rounded", default=False)
    user_dir: str | None = option("plugin that defines the criterion, if it is not ours", default=None, metavar="DIR")


def export(options: ExportOptions) -> None:
    """Convert, and print what was written."""
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..core.configuration import import_plugin
    from ..huggingface.exporting import export_model

    import_plugin(options.user_dir)
    for folder in export_model(options.checkpoint, options.output, options.data, half=options.half):
        print(f"wrote {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


main = command_line("exchange export", __doc__, export)
