"""The commands of ``tn-fairseq``: one file for each, with its parser and its ``main``. Only they read command lines."""

# The groups, and what each command does. The file of "data binarize" is data_binarize.py.
GROUPS = {
    "data": {
        "binarize": "turn text into dict.txt, train.bin, train.idx, valid.bin ...",
        "train-tokenizer": "train a WordPiece or SentencePiece tokenizer on text",
        "glue": "turn GLUE into what --task sentence_prediction reads",
        "squad": "turn SQuAD 1.1 into what --task squad reads",
        "teach": "let a teacher read the text once, for --distillation-draws",
    },
    "synonyms": {
        "build": "build a synonym table for a dictionary or a tokenizer",
        "show": "print rows of a table, and where it is from",
        "fetch-wordnet": "get WordNet for NLTK",
    },
    "look": {
        "analysis": "find false negatives: how often predictions are synonyms, and which ones",
        "doctor": "check the installation, and whether data, checkpoint and table fit together",
    },
    "evaluate": {
        "glue": "fine-tune on GLUE with several seeds, and compare",
        "squad": "fine-tune on SQuAD with several seeds, and compare",
        "squad-score": "exact match and F1 of a file of predictions",
        "lexical": "measure substitutes, word similarities and minimal pairs, without training",
        "swap-synonyms": "attack SQuAD: swap words for synonyms",
        "add-distractors": "attack SQuAD: add a sentence that looks like the answer",
        "robustness": "score checkpoints fine-tuned on SQuAD on attacked questions",
    },
    "exchange": {
        "import": "turn a model of transformers into a checkpoint for fairseq-train",
        "export": "turn a checkpoint of fairseq-train into a model of transformers",
    },
    "": {
        "study": "train with several objectives and seeds, measure and compare all",
        "user-dir": "print the folder for fairseq-train --user-dir",
    },
}
