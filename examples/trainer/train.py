#!/usr/bin/env python3
"""Continue a small BERT with plain masked LM and with hard correction, in a Trainer of transformers.

    python examples/quickstart/wordnet_corpus.py --output-dir corpus
    python examples/trainer/train.py --corpus corpus --output trained

needs no fairseq. Both runs have the same text, order and masks, and are evaluated with the same masks.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase, TrainingArguments
from transformers.utils import logging

from tn_fairseq.commands.arguments import positive
from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import read_text
from tn_fairseq.core.masked_prediction import false_negatives, masked_predictions
from tn_fairseq.core.packages import load_with_transformers
from tn_fairseq.huggingface import SynonymTable, TrueNegativeTrainer

SMALL_MODEL = Path(__file__).resolve().parent.parent / "small_model" / "model"
OBJECTIVES = {"plain": "mlm", "corrected": "mlm_hard_correction"}
SHOWN = {
    "nll_loss": "masked-LM loss, in bits",
    "mlm_accuracy": "masked tokens predicted, in %",
    "false_negative_sequences": "sequences with a false negative, in %",
    "false_negative_rate": "wrong tokens that are false negatives, in %",
}
CASES, NEAR = 3, 9  # cases to print, and their tokens on each side


def blocks(path: Path, tokenizer: PreTrainedTokenizerBase, length: int = 128) -> list[dict[str, list[int]]]:
    """The lines of a text, one after the other, cut into blocks of ``length`` tokens."""
    text = read_text(path, "write it with examples/quickstart/wordnet_corpus.py")
    lines = [line for line in text.splitlines() if line]
    tokens = [token for row in tokenizer(lines, add_special_tokens=False)["input_ids"] for token in row]
    inner = length - 2
    if len(tokens) < inner:
        raise InputError(f"{path}: has {len(tokens)} tokens; give a text of at least {inner}")
    return [
        {"input_ids": [tokenizer.cls_token_id, *tokens[start : start + inner], tokenizer.sep_token_id]}
        for start in range(0, len(tokens) - inner + 1, inner)
    ]


def load(auto_class: str, model: str) -> Any:
    """What a class of transformers, such as AutoTokenizer, loads."""
    try:
        return load_with_transformers(auto_class, model)
    except ValueError as error:
        raise InputError(f"--model {model}: {error}") from None


@torch.no_grad()
def punished(trainer: TrueNegativeTrainer, rows: list, synonyms: SynonymTable) -> list[tuple[float, str, str, str]]:
    """The most likely predictions that are synonyms: their probability, the text around, and both words."""
    tokenizer, found = trainer.processing_class, {}
    for batch in trainer.get_eval_dataloader(rows):
        logits = trainer.model(batch["input_ids"]).logits[batch["labels"] != -100].cpu()
        inputs, labels = batch["input_ids"].cpu(), batch["labels"].cpu()
        is_masked = labels != -100
        best, predicted = logits.softmax(dim=-1).max(dim=-1)
        masked = masked_predictions(
            inputs, labels, is_masked, logits, predicted, tokenizer.pad_token_id, synonyms.continues_word
        )
        text, words = masked.text, masked.words
        fired = false_negatives(predicted, words, synonyms.synonyms)
        for index in fired.nonzero().flatten().tolist():
            row, column = is_masked.nonzero()[index].tolist()
            before, after = text[row, max(0, column - NEAR) : column], text[row, column + 1 : column + 1 + NEAR]
            gold, synonym = (tokenizer.decode([ids[index]]) for ids in (words, predicted))
            parts = [tokenizer.decode(part, skip_special_tokens=True) for part in (before, after)]
            # one case for each word
            case = (best[index].item(), f"… {parts[0]} [{gold}] {parts[1]} …", gold, synonym)
            found[gold] = max(case, found.get(gold, case))
    return sorted(found.values(), reverse=True)[:CASES]


@one_line_errors()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="folder with train.txt and valid.txt")
    parser.add_argument("--output", type=Path, required=True, help="folder for the two models")
    parser.add_argument("--model", default=str(SMALL_MODEL), help="a masked LM of transformers (default: a small BERT)")
    parser.add_argument("--updates", type=positive, default=200, help="updates of each run (default: 200)")
    args = parser.parse_args()

    tokenizer = load("AutoTokenizer", args.model)
    train, valid = (blocks(args.corpus / f"{split}.txt", tokenizer) for split in ("train", "valid"))
    synonyms = SynonymTable.from_wordnet(tokenizer)
    print(synonyms)

    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {args.output}: {error.strerror}; name another folder") from None
    evaluations = {}
    quiet = not sys.stderr.isatty()
    if quiet:
        logging.disable_progress_bar()
    for name, objective in OBJECTIVES.items():
        trainer = TrueNegativeTrainer(
            model=load("AutoModelForMaskedLM", args.model),
            args=TrainingArguments(
                output_dir=str(args.output / name),
                max_steps=args.updates,
                per_device_train_batch_size=8,
                per_device_eval_batch_size=64,
                learning_rate=3e-4,
                warmup_steps=30,
                logging_steps=50,
                save_strategy="no",
                report_to=[],
                disable_tqdm=quiet,
                dataloader_pin_memory=torch.cuda.is_available(),
            ),
            train_dataset=train,
            # the data collator draws the same masks in each run, because each has its own with the same seed
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=1),
            objective=objective,
            synonyms=synonyms,
        )
        trainer.train()
        trainer.save_model()
        trainer.data_collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=2)
        evaluations[name] = trainer.evaluate(valid)
        if name == "plain":
            cases = punished(trainer, valid, synonyms)

    count = sum(len(block["input_ids"]) for block in valid)
    print(f"\nheld-out text: {count:,} tokens, the same masks for both")
    print(f"{'':44}{'plain':>10}{'corrected':>11}{'difference':>12}")
    for name, label in SHOWN.items():
        plain, corrected = (evaluations[run][f"eval_{name}"] for run in OBJECTIVES)
        print(f"{label:44}{plain:10.2f}{corrected:11.2f}{corrected - plain:+12.2f}")
    print("\nwhat plain masked LM punishes: the most likely synonyms")
    for number, (probability, context, gold, synonym) in enumerate(cases, start=1):
        print(f"  {number}. {context}\n     gold {gold}, synonym {synonym} (probability {100 * probability:.2f}%)")
    print(f"\nthe models: {args.output / 'plain'} and {args.output / 'corrected'}; from_pretrained reads them")


if __name__ == "__main__":
    torch.manual_seed(1)
    main()
