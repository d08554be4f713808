"""Pre-training on masked text: ``--task electra``, for ELECTRA and BERT."""

import hashlib
import logging
import os
import re
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional  # fairseq does not know list[int]

from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY, FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset, TokenBlockDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMTask
from omegaconf import II, MISSING, OmegaConf
from torch import nn

from ..core.configuration import check_data_folder
from ..core.dictionary import MASK, fingerprint, load_dictionary
from ..core.errors import InputError, one_line_errors
from ..core.files import sha256
from ..core.options import check, option
from ..core.vocabulary import WordStarts
from ..data.block_iterator import BlockIterator
from ..data.blocks import BlockDataset, ContiguousBlocks
from ..data.data_bin import load_sentences
from ..data.documents import DocumentStartsDataset
from ..data.drawn_folder import DrawnFolder, check_same
from ..data.masked_tokens_dataset import MaskedTokensDataset, with_mask_prob
from ..data.segments import SHORTEST, SegmentPairDataset
from ..models.base import EncoderModel

logger = logging.getLogger(__name__)


@dataclass
class ElectraTaskConfig(FairseqDataclass):
    data: str = option("data-bin folders, separated by colons; one per epoch, in turn", default=MISSING)
    sample_break_mode: ChoiceEnum(["segments", "none", "complete", "complete_doc"]) = option(  # type: ignore[valid-type]
        "segments makes pairs of segments of one document, as ELECTRA and BERT do; none fills blocks with "
        "text; complete does not split sentences, but cuts off longer ones; complete_doc also keeps documents apart",
        default="segments",
    )
    document_attention: bool = option(
        "keep attention and positions inside each document of a block (break modes none, complete)",
        default=False,
        needs={"sample_break_mode": ("none", "complete")},
    )
    tokens_per_sample: int = option("longest block in tokens, <s> included", default=128, at_least=2)
    mask_prob: float = option("share of the tokens to mask, without special symbols", default=0.15, above=0, below=1)
    final_mask_prob: Optional[float] = option(
        "change the share linearly from --mask-prob to this one at --max-update", default=None, above=0, below=1
    )
    mask_whole_words: bool = option("mask a share of the words, each with all pieces", default=False)
    leave_unmasked_prob: float = option("share of the masked tokens to leave as is", default=0.15, at_least=0)
    random_token_prob: float = option("share of the masked tokens to replace at random", default=0.0, at_least=0)
    mask_seed: Optional[int] = option(
        "decides how text is cut and masked, so that runs can differ in --seed alone", default=None
    )
    seed: int = II("common.seed")
    train_subset: str = II("dataset.train_subset")
    max_update: int = II("optimization.max_update")
    update_freq: List[int] = II("optimization.update_freq")


# the options that decide blocks and masks
DECIDE_MASKS = (
    *("sample_break_mode", "document_attention", "tokens_per_sample", "mask_prob", "mask_whole_words"),
    *("leave_unmasked_prob", "random_token_prob", "mask_seed"),
)


@register_task("electra", dataclass=ElectraTaskConfig)
class ElectraTask(MaskedLMTask):
    """fairseq's ``masked_lm`` task with ELECTRA's masking, which masks no special symbol but ``<unk>``."""

    cfg: ElectraTaskConfig
    uses_ema = True  # with --store-ema, fairseq passes the moving average to the steps below
    draws: Optional[str] = None  # --distillation-draws, which is an option of the criterion

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        parser.set_defaults(required_batch_size_multiple=1)  # fairseq's 8 rounds --batch-size down

    @classmethod
    @one_line_errors()
    def setup_task(cls, cfg: ElectraTaskConfig, **kwargs: Any) -> "ElectraTask":
        """Raises InputError (as a one-line exit) if an option is out of range or the folder has no dict.txt."""
        if OmegaConf.is_missing(cfg, "data"):
            raise InputError("task.data is not given; name the folder that tn-fairseq data binarize wrote")
        check(cfg, ElectraTaskConfig)
        if cfg.leave_unmasked_prob + cfg.random_token_prob > 1:
            raise InputError("--leave-unmasked-prob and --random-token-prob must add up to at most 1")
        if cfg.sample_break_mode == "segments" and cfg.tokens_per_sample < SHORTEST:
            raise InputError(
                f"--tokens-per-sample {cfg.tokens_per_sample}: must be at least {SHORTEST} with --sample-break-mode "
                "segments"
            )
        if cfg.final_mask_prob is not None and not cfg.max_update:
            raise InputError("--final-mask-prob needs --max-update, the update at which it is reached")
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dict(cls, cfg: ElectraTaskConfig) -> Dictionary:
        check_data_folder(cfg.data)
        first, *others = utils.split_paths(cfg.data)
        dictionary = load_dictionary(os.path.join(first, "dict.txt"))
        if dictionary.symbols[-1] != MASK:
            raise InputError(
                f"{first}/dict.txt: {MASK} must be the last symbol; binarize the text with tn-fairseq data binarize"
            )
        for shard in others:  # now, not when their epoch begins
            own = os.path.join(shard, "dict.txt")
            if os.path.exists(own) and load_dictionary(own) != dictionary:
                raise InputError(f"{own}: not the dictionary of {first}; binarize all shards in one run")
            index = os.path.join(shard, f"{cfg.train_subset}.idx")
            if not os.path.exists(index):
                raise InputError(f"there is no {index}; write all shards with tn-fairseq data binarize --shards")
        return dictionary

    @one_line_errors()
    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load one split as masked blocks.

        Raises InputError (as a one-line exit) if the split is missing, unreadable or empty, and if the dictionary does
        not tell where words begin.
        """
        mask_prob = self.cfg.mask_prob
        if self.cfg.final_mask_prob is not None:
            # training masks the larger share, and train_step undoes a part of it; validation never changes
            training = split == self.cfg.train_subset
            mask_prob = max(mask_prob, self.cfg.final_mask_prob) if training else self.cfg.final_mask_prob
        blocks = self._load_dataset_split(split, epoch, combine)
        self.datasets[split] = MaskedTokensDataset(
            blocks,
            self.source_dictionary,
            seed=self.mask_seed,
            mask_prob=mask_prob,
            leave_unmasked_prob=self.cfg.leave_unmasked_prob,
            random_token_prob=self.cfg.random_token_prob,
            starts_word=self._starts_word() if self.cfg.mask_whole_words else None,
            order_seed=self.cfg.seed,
            drawn=self._read_draws() if self.draws and split == self.cfg.train_subset else None,
        )

    @property
    def mask_seed(self) -> int:
        """The seed of blocks and masks."""
        return self.cfg.seed if self.cfg.mask_seed is None else self.cfg.mask_seed

    def decides_masks(self) -> dict[str, Any]:
        """What decides the blocks and masks of training: the dictionary, the text, and options."""
        digest = hashlib.sha256()
        for folder in utils.split_paths(self.cfg.data):
            for path in sorted(Path(folder).glob(f"{self.cfg.train_subset}*")):
                if re.fullmatch(r"\d*\.(bin|idx)", path.name.removeprefix(self.cfg.train_subset)):
                    digest.update(f"{path.name} {sha256(path)}\n".encode())
        options = {name: getattr(self.cfg, name) for name in DECIDE_MASKS} | {"mask_seed": self.mask_seed}
        options["sample_break_mode"] = str(options["sample_break_mode"])
        return {
            "dictionary": fingerprint(self.source_dictionary),
            "text": digest.hexdigest(),
            "options": options,
        }

    def _read_draws(self) -> DrawnFolder:
        drawn = DrawnFolder.read(Path(self.draws or ""))
        check_same(drawn, self.decides_masks())
        if self.cfg.final_mask_prob is not None:
            raise InputError("--distillation-draws: the teacher read text with one --mask-prob; omit --final-mask-prob")
        logger.info(
            f"{drawn.path}: {drawn.draws} draws of a teacher at each masked position; epoch {drawn.versions + 1} "
            "has the masks of epoch 1 again"
        )
        return drawn

    def _starts_word(self) -> WordStarts:
        try:
            return WordStarts(self.source_dictionary)
        except InputError:
            raise InputError(
                "--mask-whole-words: dict.txt contains numbers (GPT-2 BPE), which do not tell where words begin; "
                "binarize the text with tn-fairseq data binarize and another tokenizer, such as RoBERTa's "
                "tokenizer.json"
            ) from None

    def train_step(
        self,
        sample: dict[str, Any],
        model: nn.Module,
        criterion: nn.Module,
        optimizer: Any,
        update_num: int,
        ema_model: Optional[nn.Module] = None,
        **options: Any,
    ) -> tuple:
        """With ``--final-mask-prob``, mask the share of this update. The criterion finds the average in the batch."""
        if self.cfg.final_mask_prob is not None:
            done = min(update_num / self.cfg.max_update, 1.0)
            mask_prob = self.cfg.mask_prob + done * (self.cfg.final_mask_prob - self.cfg.mask_prob)
            sample = with_mask_prob(sample, mask_prob, self.source_dictionary.pad())
        sample = {**sample, "ema_model": ema_model}
        return super().train_step(sample, model, criterion, optimizer, update_num, **options)

    def valid_step(
        self, sample: dict[str, Any], model: nn.Module, criterion: nn.Module, ema_model: Optional[nn.Module] = None
    ) -> tuple:
        return super().valid_step({**sample, "ema_model": ema_model}, model, criterion)

    @one_line_errors()
    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """Raises InputError (as a one-line exit) for a model that cannot keep attention inside documents."""
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.document_attention and not isinstance(model, EncoderModel):
            raise InputError(f"--document-attention needs one of our electra_* and bert_* models, not {cfg._name}")
        return model

    @one_line_errors()
    def get_batch_iterator(
        self,
        dataset: FairseqDataset,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        required_batch_size_multiple: int = 1,
        num_workers: int = 0,
        **options: Any,
    ) -> EpochBatchIterator:
        """Raises InputError (as a one-line exit) for invalid sizes, and if fairseq would skip all but a few blocks."""
        if max_sentences is not None and max_sentences < 1:
            raise InputError(f"--batch-size (or --batch-size-valid) must be positive, not {max_sentences}")
        if num_workers < 0:
            raise InputError(f"--num-workers must be non-negative, not {num_workers}")
        if max_tokens is not None and (longest := dataset.sizes.max()) > max_tokens:
            raise InputError(
                f"--max-tokens (or --max-tokens-valid) {max_tokens} is less than a block of {longest} tokens; raise "
                "it, or lower --tokens-per-sample"
            )
        multiple = {"required_batch_size_multiple": required_batch_size_multiple}
        sizes = {"max_tokens": max_tokens, "max_sentences": max_sentences, **multiple}
        iterator = super().get_batch_iterator(dataset, **sizes, num_workers=num_workers, **options)
        iterator.__class__ = BlockIterator  # fairseq's method makes its own class
        iterator.set_batching(sizes, self.cfg.get("update_freq", [1]))
        iterator.reuse_dataloader = False  # loader processes would keep the masks of the first epoch
        return iterator

    @one_line_errors()
    def build_criterion(self, cfg: Any, *args: Any, **options: Any) -> FairseqCriterion:
        """Raises InputError (as a one-line exit) for fairseq's own criteria, which do not train a discriminator."""
        self.draws = getattr(cfg, "distillation_draws", None)
        criterion = super().build_criterion(cfg, *args, **options)
        if type(criterion).__module__.startswith("fairseq."):
            ours = [name for name, kind in CRITERION_REGISTRY.items() if hasattr(kind, "kind")]
            fault = f"--criterion {cfg._name} is fairseq's, which trains no discriminator; for BERT, mlm is the same"
            raise InputError(f"{fault}; give one of {', '.join(sorted(ours))}")
        return criterion

    def _load_dataset_split(self, split: str, epoch: int, combine: bool) -> BlockDataset:
        folders = utils.split_paths(self.cfg.data)
        path = os.path.join(folders[(epoch - 1) % len(folders)], split)
        sentences = load_sentences(path, "binarize", self.source_dictionary, combine)
        if sentences.sizes.max(initial=0) < 2:  # each ends with </s>
            raise InputError(f"{path}.bin holds only empty lines; binarize a corpus with text")
        if self.cfg.sample_break_mode == "segments":
            return self._segments(sentences, split, path)
        limit = self.cfg.tokens_per_sample - 1  # one less for <s>
        blocks = TokenBlockDataset(
            sentences,
            sentences.sizes,
            limit,
            pad=self.source_dictionary.pad(),
            eos=self.source_dictionary.eos(),
            break_mode=str(self.cfg.sample_break_mode),
        )
        too_long = (blocks.sizes > limit).sum()
        if too_long:
            # fairseq would refuse them; a loss of data must be reported
            logger.warning(
                f"{too_long:,} of {len(blocks):,} {split} blocks are one sentence longer than --tokens-per-sample "
                f"{self.cfg.tokens_per_sample} and are cut off; --sample-break-mode none loses nothing"
            )
        logger.info(f"{split}: {len(blocks):,} blocks of at most {self.cfg.tokens_per_sample} tokens from {path}")
        text = ContiguousBlocks(sentences, blocks.slice_indices, self.source_dictionary, self.cfg.tokens_per_sample)
        return DocumentStartsDataset(text, self.source_dictionary) if self.cfg.document_attention else text

    def _segments(self, sentences: FairseqDataset, split: str, path: str) -> SegmentPairDataset:
        longest = self.cfg.tokens_per_sample
        pairs = SegmentPairDataset(sentences, self.source_dictionary, longest, self.mask_seed)
        logger.info(
            f"{split}: {len(pairs):,} sequences of at most {longest} tokens from {path}, "
            f"{(pairs.second > 0).mean():.1%} with two segments"
        )
        return pairs
