"""Find false negatives: how often predictions are synonyms of the gold word during training, and which ones.

    tn-fairseq look analysis DATA_BIN --split valid --path 'checkpoints/checkpoint*.pt' \\
        --synonym-table synonyms.safetensors --output false-negatives

    tn-fairseq look analysis DATA_BIN --model 'trained/checkpoint-*' \\
        --synonym-table synonyms.safetensors --output false-negatives

Predicts the masked words of a split with each checkpoint of fairseq-train (ELECTRA's generator, BERT, RoBERTa) or each
masked language model of transformers. Nothing is trained. The text is masked several times; the first masking is the
one that validation during training uses. Prints the rates, and writes them to index.html, comparisons.csv and
results.parquet, and a comparison of the tables to sources.csv. For the checkpoint trained longest, writes pairs of
words to pairs.csv and cases with their sentences to cases.html. With --teacher, another model reads the same masked
text, and the report says which wrong predictions it finds likely.
"""

import logging

from ..core.errors import if_interrupted
from ..tools.look.analysis_options import AnalysisOptions
from .arguments import command_line


def look_analysis(options: AnalysisOptions) -> None:
    """Write the report and print its tables."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.look.analysis import analyze

    with if_interrupted(f"nothing was written to {options.output}"):
        print(analyze(options))


main = command_line("look analysis", __doc__, look_analysis)
