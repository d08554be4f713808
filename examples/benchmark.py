#!/usr/bin/env python3
"""Speed and memory of pre-training, compared with a plain training loop over the classes of transformers.

    python examples/benchmark.py --output benchmark

Each subject runs in its own process. They take turns of a few seconds for several rounds, so other load on the machine
slows all of them alike. The script prints, and writes to OUTPUT.json, for each precision of transformers, of the bare
step and of fairseq-train: the tokens per second (median, least and most of the rounds), the peak memory, and the share
of the machine's rate of matrix products. Then it compares the step of each criterion with plain ELECTRA's, the step and
the memory of a BERT with teachers of two sizes with those without a teacher, and on a CPU one run on all threads with
several runs on one thread each, with and without another busy process. Finally, it compares how fast one process makes
batches with the collator of transformers. With `--only-batches` or `--only-teachers`, it compares only these.
"""

import argparse
import itertools
import json
import logging
import math
import multiprocessing
import os
import platform
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

import numpy as np
import torch
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY_SIZE = 30_522
SYNONYMS = 20  # of each third word
CRITERIA = ("electra", "mlm_hard_correction", "mlm_soft_reg", "mlm_sent_kl")  # plain, and the paper's
DOCUMENTS = "electra, --document-attention"  # with four documents in each sequence
JUDGED = "mlm_hard_correction, --correction-judge discriminator"
DISTILLED = "mlm_distillation, a teacher of the same size"
BERT = "bert_tiny"  # with the sizes below
STUDENT = ("--encoder-embed-dim", 256, "--encoder-attention-heads", 4)
STUDENT_LAYERS = 6
TEACHERS = {"of the same size": STUDENT_LAYERS, "of twice the size": 2 * STUDENT_LAYERS}  # their layers
JUDGE = ("--correction-judge", "discriminator", "--prediction-mode", "sample")
TASK = ("--task", "electra", "--sample-break-mode", "none")  # full sequences
TRAINING = """
    --optimizer electra_adamw --lr 5e-4 --clip-norm 1.0
    --lr-scheduler polynomial_decay --warmup-updates 10000 --total-num-update 1000000
"""
PRECISIONS = {"cpu": ("float32", "bfloat16"), "cuda": ("float32", "float16", "bfloat16")}
FLAGS = {"float32": [], "float16": ["--fp16", "--fp16-no-flatten-grads"], "bfloat16": ["--bf16"]}
# of a CPU that matter for matrix products
INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
TRAINER_INTERVAL = 5  # updates between two log lines of fairseq-train
WORDS_DRAWN = 25
MATRIX_SIZES = {"cpu": 2048, "cuda": 8192}
BATCH_ROWS, BATCH_LENGTHS, BATCH_TOKENS = 128, (128, 512), 1_000_000  # of the batches that one process makes
START = "spawn"  # of processes; a fork would have this process's memory and ignore the variables of its environment

Step = Callable[[], None]


def main() -> None:
    """Measure, print tables, and write them."""
    logging.disable(logging.INFO)  # as in the subjects: print only the measurements
    args = parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(args.threads)
    results = circumstances(device, args.threads)
    with tempfile.TemporaryDirectory() as folder:
        if args.only_batches:
            return write_results({**results, "batches": compare_batches(args, Path(folder))}, args.output)
        data_bin, sizes = write_data(Path(folder), args)
        common = {"data_bin": data_bin, "sizes": sizes, "device": device, **vars(args)}
        arch = BERT if args.only_teachers else args.arch
        print(f"{arch}, batch {args.batch_size} x {args.length}, on {results['machine']['device']}")
        for precision in args.precisions or PRECISIONS[device]:
            of_precision = common | {"precision": precision}
            results[precision] = {} if args.only_teachers else compare(of_precision)
            if not args.only_teachers:
                results[precision]["criteria"] = compare_criteria(of_precision)
            results[precision]["teachers"] = compare_teachers(of_precision)
        if args.only_teachers:
            return write_results(results, args.output)
        if "float32" in results:
            add_ratios_to_float32(results)
        if device == "cpu":
            results["threads"] = compare_threads(common | {"precision": (args.precisions or PRECISIONS[device])[-1]})
        results["batches"] = compare_batches(args, Path(folder))
    write_results(results, args.output)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    # imported here because it registers the plugin, which other processes that import this module must not do
    from tn_fairseq.commands.arguments import positive

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=results_name, required=True, metavar="NAME", help="NAME.json is written")
    parser.add_argument("--arch", default="electra_small", help="an electra_* architecture (default: %(default)s)")
    parser.add_argument("--batch-size", type=positive, default=16, metavar="N", help="sequences (default: %(default)s)")
    parser.add_argument(
        "--length", type=positive, default=128, metavar="N", help="tokens in each (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=positive, default=5, metavar="N", help="turns per subject (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="time per turn (default: %(default)s)")
    parser.add_argument(
        "--updates", type=positive, default=40, metavar="N", help="for fairseq-train (default: %(default)s)"
    )
    parser.add_argument("--threads", type=positive, default=os.cpu_count(), metavar="N", help="(default: all cores)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-batches", action="store_true", help="compare only how fast batches are made")
    only.add_argument("--only-teachers", action="store_true", help="compare only what a teacher costs")
    parser.add_argument(
        "--precisions", nargs="+", choices=PRECISIONS["cuda"], help="(default: all that the device has)"
    )
    args = parser.parse_args()
    if not args.arch.startswith("electra_"):
        parser.error(f"--arch {args.arch}: must be an electra_* architecture")
    if args.updates < 2 * TRAINER_INTERVAL:
        parser.error(
            f"--updates {args.updates}: must be at least {2 * TRAINER_INTERVAL}, because the first are not timed"
        )
    return args


# The subjects. Each is built in its own process; ``run`` takes a turn and returns the mean seconds of a step.


class Steps:
    """Training steps of one kind."""

    def __init__(self, step: Step, common: dict[str, Any]):
        self.step, self.common = step, common
        step()

    def run(self, seconds: float) -> float:
        return seconds_per_step(self.step, self.common, seconds)

    def peak(self) -> int:
        return peak_memory(self.common)

    def count(self) -> int:
        return count_flops(self.step)


class Criteria:
    """The step of each criterion and of three options, and the extra passes of sentence KL, which take turns."""

    def __init__(self, common: dict[str, Any]):
        self.all = {name: Steps(make_our_step(common, name), common) for name in CRITERIA}
        self.all[DOCUMENTS] = Steps(make_our_step(common, "electra", documents=4), common)
        self.all[JUDGED] = Steps(make_our_step(common, "mlm_hard_correction", flags=JUDGE), common)
        teacher = ("--distillation-teacher", common["data_bin"] / "teacher.pt")
        self.all[DISTILLED] = Steps(make_our_step(common, "mlm_distillation", flags=teacher), common)
        self.all["passes"] = Steps(make_generator_passes(common), common)

    def run(self, seconds: float) -> dict[str, float]:
        return {name: steps.run(seconds) for name, steps in self.all.items()}


class Trainer:
    """fairseq-train with its default of one loader process."""

    def __init__(self, common: dict[str, Any]):
        self.common = common

    def run(self, _: float) -> float:
        return self.common["batch_size"] * self.common["length"] / run_trainer(self.common)

    def peak(self) -> int | None:
        on_cpu = self.common["device"] == "cpu"
        return 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if on_cpu else None


def peer(common: dict[str, Any]) -> Steps:
    return Steps(make_peer_step(common), common)


def ours(common: dict[str, Any], compiled: bool = False) -> Steps:
    return Steps(make_our_step(common, "electra", ["--compile-model"] if compiled else []), common)


def student(common: dict[str, Any], teacher: str | None = None, draws: bool = False) -> Steps:
    """The step of a BERT with plain masked LM, with a teacher of ``TEACHERS``, or on draws of the first one."""
    flags = [*STUDENT, "--encoder-layers", STUDENT_LAYERS]
    if draws:
        flags += ["--distillation-draws", "in the batches"]
        return Steps(make_our_step(common, "mlm_distillation", flags, drawn=True), common)
    if teacher is None:
        return Steps(make_our_step(common, "mlm", flags), common)
    flags += ["--distillation-teacher", common["data_bin"] / f"{TEACHERS[teacher]} layers.pt"]
    return Steps(make_our_step(common, "mlm_distillation", flags), common)


def make_peer_step(common: dict[str, Any], compiled: bool = False) -> Step:
    """A plain loop over the classes of transformers: for ELECTRA, two encoders with tied embeddings, or masked LM."""
    make = peer_electra if common["arch"].startswith("electra") else peer_bert
    parameters, loss_of = make(common, torch.compile if compiled else lambda model: model)
    batches = endless_batches(common)
    optimizer = torch.optim.AdamW(parameters, 5e-4, (0.9, 0.999), 1e-6, 0.01, fused=True)

    def step() -> None:
        batch = next(batches)
        with autocast(common):
            loss = loss_of(batch["net_input"]["src_tokens"], batch["target"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def peer_electra(common: dict[str, Any], compile_model: Callable) -> tuple[list[torch.nn.Parameter], Callable]:
    """The parameters, and the loss of tokens and targets: replaced token detection."""
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

    sizes, encoders = common["sizes"], []
    for owner, make in (("generator", ElectraForMaskedLM), ("encoder", ElectraForPreTraining)):
        config = ElectraConfig(
            vocab_size=VOCABULARY_SIZE,
            embedding_size=sizes["embedding_size"],
            num_hidden_layers=sizes[f"{owner}_layers"],
            hidden_size=sizes[f"{owner}_embed_dim"],
            num_attention_heads=sizes[f"{owner}_attention_heads"],
            intermediate_size=sizes[f"{owner}_ffn_embed_dim"],
            pad_token_id=1,
        )
        encoders.append(make(config).to(common["device"]).train())
    generator, discriminator = encoders
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    parameters = list({id(p): p for encoder in encoders for p in encoder.parameters()}.values())
    generator, discriminator = map(compile_model, encoders)

    def loss_of(tokens: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        masked, attention_mask = target.ne(1), tokens.ne(1).long()
        generated = generator(tokens, attention_mask=attention_mask, labels=target.masked_fill(~masked, -100))
        with torch.no_grad():
            probabilities = generated.logits[masked].float().softmax(-1)
            drawn = torch.multinomial(probabilities, 1).squeeze(1)
            corrupted = tokens.masked_scatter(masked, drawn)
            is_replaced = corrupted.ne(torch.where(masked, target, tokens))
        detected = discriminator(corrupted, attention_mask=attention_mask, labels=is_replaced.long())
        return generated.loss + 50 * detected.loss

    return parameters, loss_of


def peer_bert(common: dict[str, Any], compile_model: Callable) -> tuple[list[torch.nn.Parameter], Callable]:
    """The parameters, and the loss of tokens and targets: masked LM."""
    from transformers import BertConfig, BertForMaskedLM

    sizes = common["sizes"]
    config = BertConfig(
        vocab_size=VOCABULARY_SIZE,
        num_hidden_layers=sizes["encoder_layers"],
        hidden_size=sizes["encoder_embed_dim"],
        num_attention_heads=sizes["encoder_attention_heads"],
        intermediate_size=sizes["encoder_ffn_embed_dim"],
        pad_token_id=1,
    )
    model = BertForMaskedLM(config).to(common["device"]).train()
    parameters = list(model.parameters())
    model = compile_model(model)

    def loss_of(tokens: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return model(tokens, attention_mask=tokens.ne(1).long(), labels=target.masked_fill(target.eq(1), -100)).loss

    return parameters, loss_of


def make_our_step(
    common: dict[str, Any], criterion: str, flags: Sequence[object] = (), documents: int = 0, drawn: bool = False
) -> Step:
    """The step of fairseq-train without its trainer: criterion, gradients, clipping, optimizer."""
    batches = endless_batches(common, documents, drawn)
    model, loss_of = our_parts(common, criterion, flags)
    mixed = autocast(common) if common["device"] == "cuda" else nullcontext()
    parameters = list(model.parameters())
    optimizer = build_optimizer(parameters)

    def step() -> None:
        with mixed:
            loss, sample_size, _ = loss_of(model, next(batches))
        (loss / sample_size).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def make_generator_passes(common: dict[str, Any]) -> Step:
    """The extra passes of sentence KL: the generator once without gradients and once with them."""
    batches = endless_batches(common)
    model, _ = our_parts(common, "electra")

    def step() -> None:
        tokens = next(batches)["net_input"]["src_tokens"]
        with autocast(common):
            with torch.no_grad():
                model(src_tokens=tokens, features_only=True, encoder="generator")
            hidden, _ = model(src_tokens=tokens, features_only=True, encoder="generator")
        hidden.float().square().sum().backward()
        model.zero_grad(set_to_none=True)

    return step


def endless_batches(common: dict[str, Any], documents: int = 0, drawn: bool = False) -> Iterator[dict]:
    """The same few batches on the device, repeated without end.

    With a number of documents in each sequence; and if ``drawn``, with as many different words at each masked position
    as 50 draws of a small BERT have.
    """
    batches = torch.load(common["data_bin"] / "batches.pt", map_location=common["device"], weights_only=True)
    for batch in batches if documents else []:
        tokens = batch["net_input"]["src_tokens"]
        numbers = torch.arange(tokens.size(1), device=tokens.device) * documents // tokens.size(1)
        batch["net_input"]["documents"] = numbers.expand_as(tokens)
        batch["net_input"].pop("layout", None)  # which says that a row is one document
    for batch in batches if drawn else []:
        shape = len(batch["masked_indices"]), WORDS_DRAWN
        words = torch.randint(5, VOCABULARY_SIZE - 1, shape, device=common["device"])
        batch["draws"] = words, torch.full(shape, 50 // WORDS_DRAWN, dtype=torch.int32, device=common["device"])
    return itertools.cycle(batches)


def our_parts(common: dict[str, Any], criterion: str, flags: Sequence[object] = ()):
    """The model and criterion that fairseq-train builds, on a CPU in its precision."""
    from tn_fairseq.fairseq_patches.bf16 import run_under_autocast

    cfg, task = set_up(common["data_bin"], common["arch"], common["length"], criterion, flags)
    torch.manual_seed(1)
    model = task.build_model(cfg.model).to(common["device"]).train()
    if common["device"] == "cpu" and common["precision"] == "bfloat16":
        run_under_autocast(model)
    return model, task.build_criterion(cfg.criterion).to(common["device"]).train()


def set_up(data_bin: Path, arch: str, length: int, criterion: str, more: Sequence[object] = ()):
    """fairseq-train's configuration and task."""
    from fairseq import tasks

    from tn_fairseq.core.configuration import training_config

    flags = [data_bin, *TASK, "--arch", arch, "--tokens-per-sample", length, "--criterion", criterion]
    if criterion == "mlm_hard_correction":
        flags += ["--synonym-table", data_bin / "synonyms.safetensors"]
    cfg = training_config([*flags, *more, *TRAINING.split()])
    return cfg, tasks.setup_task(cfg.task)


def build_optimizer(parameters: list[torch.nn.Parameter]):
    """fairseq-train's optimizer for the given parameters."""
    from omegaconf import OmegaConf

    from tn_fairseq.optim.electra_adamw import ElectraAdamW, ElectraAdamWConfig

    return ElectraAdamW(OmegaConf.structured(ElectraAdamWConfig(lr=[5e-4])), parameters)


def autocast(common: dict[str, Any]):
    """Autocast to the requested precision; disabled for float32."""
    dtype = getattr(torch, common["precision"])
    return torch.autocast(common["device"], dtype, enabled=dtype != torch.float32)


# Measurement


class Subject:
    """A process with one of the above, made by a function with options, in an environment with more variables."""

    def __init__(
        self,
        common: dict[str, Any],
        make: Callable,
        environment: Mapping[str, str] = MappingProxyType({}),
        daemon: bool = True,  # which may not have processes of its own
        **options,
    ):
        context = multiprocessing.get_context(START)
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, common, make, options), daemon=daemon)
        with mock.patch.dict(os.environ, environment):
            self.process.start()
        theirs.close()

    def ask(self, method: str, *values: Any) -> Any:
        """Call one of its methods, and wait for the result."""
        self.send(method, *values)
        return self.answer()

    def send(self, method: str, *values: Any) -> None:
        self.connection.send((method, *values))

    def answer(self) -> Any:
        try:
            return self.connection.recv()
        except EOFError:
            raise SystemExit("error: a subject's process stopped; see the lines above") from None


def serve(connection, common: dict[str, Any], make: Callable, options: dict[str, Any]) -> None:
    """Make a subject, and say how long that took; then answer requests until the connection is closed."""
    logging.disable(logging.INFO)
    torch.set_num_threads(common["threads"])
    subject = None
    while True:
        try:
            method, *values = connection.recv()
        except EOFError:
            return
        if method == "make":
            start = time.perf_counter()
            subject = make(common, **options)
            connection.send(time.perf_counter() - start)
        else:
            connection.send(getattr(subject, method)(*values))


@contextmanager
def made(subjects: dict[str, Subject]) -> Iterator[dict[str, Subject]]:
    """Make the subjects one after another; end their processes at the end."""
    try:
        for name, subject in tqdm(subjects.items(), desc="building", leave=False, disable=None):
            seconds = subject.ask("make")
            if seconds > 20:
                print(f"{name}: the first step took {seconds:.0f} s")
        yield subjects
    finally:
        for subject in subjects.values():
            subject.connection.close()


def seconds_per_step(step: Step, common: dict[str, Any], seconds: float) -> float:
    """The mean time of a step, over about ``seconds`` of steps after one that is not counted."""
    step()
    synchronize(common)
    start, steps = time.perf_counter(), 0
    while True:
        step()
        steps += 1
        if steps % 10 == 0 or common["device"] == "cpu":
            synchronize(common)
            elapsed = time.perf_counter() - start
            if elapsed >= seconds:
                return elapsed / steps


def synchronize(common: dict[str, Any]) -> None:
    if common["device"] == "cuda":
        torch.cuda.synchronize()


def count_flops(step: Step) -> int:
    """Floating-point operations in the matrix products of one step."""
    from torch.utils.flop_counter import FlopCounterMode

    def onednn_linear(x: Sequence[int], weight: Sequence[int], *_, **__) -> int:
        return 2 * math.prod(x) * weight[0]

    counted = {torch.ops.mkldnn._linear_pointwise: onednn_linear}
    with FlopCounterMode(display=False, custom_mapping=counted) as counter:
        step()
    return counter.get_total_flops()


def peak_memory(common: dict[str, Any]) -> int:
    """The peak memory of this process in bytes: GPU memory on a GPU, main memory on a CPU."""
    if common["device"] == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def matrix_product_rate(common: dict[str, Any]) -> float:
    """The highest measured floating-point operations per second of a product of two square matrices."""
    size = MATRIX_SIZES[common["device"]]
    dtype = getattr(torch, common["precision"])
    a, b = (torch.randn(size, size, device=common["device"]).to(dtype) for _ in range(2))
    # without AVX512, oneDNN has no product in bfloat16
    has_onednn = common["device"] == "cpu" and (dtype == torch.float32 or torch.ops.mkldnn._is_mkldnn_bf16_supported())
    onednn = torch.ops.mkldnn._linear_pointwise if has_onednn else torch.nn.functional.linear
    more = (None, "none", [], "") if has_onednn else ()
    products = (lambda: torch.mm(a, b), lambda: onednn(a, b, *more))
    seconds = min(0.5, common["seconds"])
    fastest = min(seconds_per_step(product, common, seconds) for product in products for _ in range(5))
    return 2 * size**3 / fastest


def compare(common: dict[str, Any]) -> dict[str, Any]:
    """Compare our step and fairseq-train with the peer, in one precision."""
    from tn_fairseq.modules.memory import MMAP_THRESHOLD, TRIM_THRESHOLD

    # tn_fairseq sets these limits itself on a CPU; environment variables set them for any program
    kept = {"MALLOC_MMAP_THRESHOLD_": str(MMAP_THRESHOLD), "MALLOC_TRIM_THRESHOLD_": str(TRIM_THRESHOLD)}
    rate = matrix_product_rate(common)
    tokens, rounds, seconds = common["batch_size"] * common["length"], common["rounds"], common["seconds"]
    subjects = {
        "transformers": Subject(common, peer),
        "transformers, memory kept": Subject(common, peer, kept),
        "tn_fairseq": Subject(common, ours),
        "tn_fairseq, compiled": Subject(common, ours, compiled=True),
        "fairseq-train": Subject(common, Trainer),
    }
    times: dict[str, list[float]] = {name: [] for name in subjects}
    with made(subjects):
        for _ in tqdm(range(rounds), desc="rounds", leave=False, disable=None):
            for name, subject in subjects.items():
                times[name].append(subject.ask("run", seconds))
        peaks = {name: subject.ask("peak") for name, subject in subjects.items()}
        flops = {name: subjects[name].ask("count") for name in ("transformers", "tn_fairseq")}
    rows, table = {}, []
    for name in subjects:
        speeds = sorted(tokens / seconds for seconds in times[name])
        counted = flops["transformers" if "transformers" in name else "tn_fairseq"]
        rows[name] = row = {
            "tokens/s": {"median": statistics.median(speeds), "least": speeds[0], "most": speeds[-1]},
            "ratio": statistics.median(theirs / ours for theirs, ours in zip(times["transformers"], times[name])),
            "peak bytes": peaks[name],
            "memory ratio": peaks[name] and peaks[name] / peaks["transformers"],
            "GFLOP a token": counted / tokens / 1e9,
            "share of matrix products": counted / statistics.median(times[name]) / rate,
        }
        table.append(
            [name, f"{row['tokens/s']['median']:,.0f}", f"{speeds[0]:,.0f} to {speeds[-1]:,.0f}", f"{row['ratio']:.2f}"]
            + ([f"{peaks[name] / 1e6:,.0f}", f"{row['memory ratio']:.2f}"] if peaks[name] else ["-", "-"])
            + [f"{row['GFLOP a token']:.3f}", f"{row['share of matrix products']:.0%}"]
        )
    print(f"\n{common['precision']}; this machine's matrix products: {rate / 1e9:,.0f} GFLOP/s")
    show(["", "tokens/s", "least to most", "ratio", "peak MB", "ratio", "GFLOP/token", "of matrix rate"], table)
    return {"matrix products FLOP/s": rate, "against the peer": rows}


def add_ratios_to_float32(results: dict[str, Any]) -> None:
    """Add the speed of each precision relative to transformers in float32."""
    base = results["float32"]["against the peer"]["transformers"]["tokens/s"]["median"]
    print("\ntokens/s, transformers in float32 = 1")
    table = []
    for precision in filter(results.__contains__, PRECISIONS["cuda"]):
        rows = results[precision]["against the peer"]
        for row in rows.values():
            row["ratio to float32"] = row["tokens/s"]["median"] / base
        table.append([precision, *(f"{row['ratio to float32']:.2f}" for row in rows.values())])
    show(["", *results["float32"]["against the peer"]], table)


def compare_criteria(common: dict[str, Any]) -> dict[str, Any]:
    """Compare the step of each criterion with plain ELECTRA's."""
    with made({"criteria": Subject(common, Criteria)}) as subjects:
        rounds = [subjects["criteria"].ask("run", common["seconds"]) for _ in range(common["rounds"])]
    names = [name for name in rounds[0] if name != "passes"]
    over = {name: statistics.median(times[name] / times["electra"] for times in rounds) for name in names}
    allowed = 1 + statistics.median(times["passes"] / times["electra"] for times in rounds)
    print("\nstep of each criterion, plain ELECTRA's = 1")
    show(
        ["", "ms", "ratio", ""],
        [
            [name, f"{1e3 * statistics.median(times[name] for times in rounds):,.1f}", f"{over[name]:.3f}"]
            + [f"{allowed:.3f} is the cost of its extra passes alone" if name == "mlm_sent_kl" else ""]
            for name in names
        ],
    )
    return {"seconds a step": rounds, "ratio": over, "sentence KL by count": allowed}


def compare_teachers(common: dict[str, Any]) -> dict[str, Any]:
    """Compare the steps and the memory of a BERT with a teacher with those of plain masked LM."""
    common = common | {"arch": BERT}
    for layers in TEACHERS.values():
        flags = [*STUDENT, "--encoder-layers", layers]
        write_teacher(common["data_bin"] / f"{layers} layers.pt", BERT, common["length"], flags)
    subjects = {"mlm": Subject(common, student)}
    subjects["draws of a teacher"] = Subject(common, student, draws=True)
    subjects |= {f"a teacher {size}": Subject(common, student, teacher=size) for size in TEACHERS}
    with made(subjects):
        rounds = [
            {name: subject.ask("run", common["seconds"]) for name, subject in subjects.items()}
            for _ in range(common["rounds"])
        ]
        peaks = {name: subject.ask("peak") for name, subject in subjects.items()}
    over = {name: statistics.median(times[name] / times["mlm"] for times in rounds) for name in subjects}
    memory = {name: peak / peaks["mlm"] for name, peak in peaks.items()}
    print(f"\nstep of a BERT of {STUDENT_LAYERS} layers in {common['precision']}, without a teacher = 1")
    show(
        ["", "ms", "ratio", "peak MB", "ratio"],
        [
            [name, f"{1e3 * statistics.median(times[name] for times in rounds):,.1f}", f"{over[name]:.2f}"]
            + [f"{peaks[name] / 1e6:,.0f}", f"{memory[name]:.2f}"]
            for name in subjects
        ],
    )
    return {"seconds a step": rounds, "ratio": over, "peak bytes": peaks, "memory ratio": memory}


def compare_threads(common: dict[str, Any]) -> dict[str, Any]:
    """Compare one run on all threads with two runs on half of them, alone and next to a busy process."""
    tokens = common["batch_size"] * common["length"]
    half = common | {"threads": max(1, common["threads"] // 2)}
    subjects = {
        "all": Subject(common, ours),
        "waiting": Subject(common, ours, {"OMP_WAIT_POLICY": "passive"}),
        "first": Subject(half, ours),
        "second": Subject(half, ours),
    }
    ways = {
        "1 run on all threads": ["all"],
        "1 run on all threads, OMP_WAIT_POLICY=passive": ["waiting"],
        "1 run on half of the threads": ["first"],
        "2 runs on half of the threads each": ["first", "second"],
    }
    found: dict[str, dict[str, list[float]]] = {way: {"alone": [], "next to a busy process": []} for way in ways}
    with made(subjects):
        for _, way in itertools.product(range(common["rounds"]), ways):
            for situation, speeds in found[way].items():
                busy = multiprocessing.get_context(START).Process(target=work_forever, daemon=True)
                if situation != "alone":
                    busy.start()
                for name in ways[way]:
                    subjects[name].send("run", common["seconds"])
                speeds.append(sum(tokens / subjects[name].answer() for name in ways[way]))
                if situation != "alone":
                    busy.kill()
    print(f"\nruns in {common['precision']} on {common['threads']} threads, tokens/s of all runs together")
    show(
        ["", *next(iter(found.values()))],
        [[way, *(f"{statistics.median(speeds):,.0f}" for speeds in found[way].values())] for way in ways],
    )
    return found


def work_forever() -> None:
    while True:
        pass


def compare_batches(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Compare torch's loader in one process over our dataset with one over lists and the collator of transformers."""
    write_vocabulary(folder)
    write_sentences(folder, BATCH_TOKENS)
    found, table = {}, []
    for length, mode in itertools.product(BATCH_LENGTHS, ("segments", "none")):
        _, task = set_up(folder, args.arch, length, "electra", ["--sample-break-mode", mode])
        task.load_dataset("train")
        dataset = task.dataset("train")
        order = dataset.ordered_indices()
        batches = [order[start : start + BATCH_ROWS] for start in range(0, len(order) - BATCH_ROWS, BATCH_ROWS)]
        theirs, collator = peer_data(dataset)
        loaders = {
            "transformers": torch.utils.data.DataLoader(theirs, batch_sampler=batches, collate_fn=collator),
            "tn_fairseq": torch.utils.data.DataLoader(dataset, batch_sampler=batches, collate_fn=dataset.collater),
        }
        tokens = int(dataset.sizes[np.concatenate(batches)].sum())
        speeds: dict[str, list[float]] = {name: [] for name in loaders}
        for _, (name, loader) in itertools.product(range(args.rounds), loaders.items()):
            speeds[name].append(tokens / seconds_per_epoch(loader, args.seconds))
        best = {name: max(values) for name, values in speeds.items()}
        ratio = best["tn_fairseq"] / best["transformers"]
        found[f"{mode} {length}"] = {"tokens/s": speeds, "ratio of the best": ratio}
        table.append(
            [f"{mode}, {BATCH_ROWS} x {length}", *(f"{value:,.0f}" for value in best.values()), f"{ratio:.1f}"]
        )
    print("\nbatches of one process, tokens/s, the best round")
    show(["", *loaders, "ratio"], table)
    return found


def peer_data(dataset: Any) -> tuple[list[dict[str, list[int]]], Callable]:
    """The same blocks as lists, as run_mlm.py of transformers prepares them, and its collator."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    words |= {f"word{n}": n for n in range(4, VOCABULARY_SIZE - 1)} | {"<mask>": VOCABULARY_SIZE - 1}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="<unk>")),
        **{"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "mask_token": "<mask>"},
    )
    blocks = [dataset.blocks[index].tolist() for index in range(len(dataset))]
    lists = [{"input_ids": ids, "special_tokens_mask": [int(one < 3) for one in ids]} for ids in blocks]
    return lists, DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)


def seconds_per_epoch(loader: Any, seconds: float) -> float:
    """The mean time of an epoch, over about ``seconds`` of epochs."""
    start, epochs = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or not epochs:
        for _ in loader:
            pass
        epochs += 1
    return (time.perf_counter() - start) / epochs


def run_trainer(common: dict[str, Any]) -> float:
    """Tokens per second from fairseq-train's log: the median of the intervals after the first."""
    on_cpu = common["device"] == "cpu"
    command = [sys.executable, "-m", "fairseq_cli.train", common["data_bin"], "--user-dir", ROOT / "tn_fairseq", *TASK]
    command += ["--arch", common["arch"], "--tokens-per-sample", common["length"], "--criterion", "electra"]
    command += [*TRAINING.split(), "--max-update", common["updates"], "--batch-size", common["batch_size"]]
    command += [*FLAGS[common["precision"]], *(["--cpu"] if on_cpu else []), "--no-save", "--disable-validation"]
    # else, it would resume from a checkpoint that the current folder has in checkpoints/
    command += ["--save-dir", common["data_bin"]]
    command += ["--log-format", "json", "--log-interval", TRAINER_INTERVAL]
    environment = {**os.environ, "OMP_NUM_THREADS": str(common["threads"]), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    records = [json.loads("{" + part) for part in re.findall(r" \| train_inner \| \{(.*)", run.stdout + run.stderr)]
    if run.returncode or len(records) < 2:
        raise SystemExit(f"error: fairseq-train failed: {run.stderr[-2000:]}")
    return statistics.median(float(record["wps"]) for record in records[1:])


# Data, machine and tables


def write_data(folder: Path, args: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """Write random text with as many words as BERT, a synonym table and a teacher; also return the model's sizes."""
    from tn_fairseq.tools.preprocessing.writers import BinaryWriter

    dictionary = write_vocabulary(folder)
    rng = np.random.default_rng(1)
    tokens = args.length - 1  # one is <s>
    for split, blocks in (("train", args.batch_size * (args.updates + 1)), ("valid", args.batch_size * 2)):
        writer = BinaryWriter(folder / split, dictionary)
        ids = rng.integers(dictionary.nspecial, len(dictionary) - 1, size=blocks * tokens)
        writer.append(ids, np.full(blocks, tokens))
        writer.close()
    write_teacher(folder / "teacher.pt", args.arch, args.length)
    return folder, write_batches(folder, args.arch, args.batch_size, args.length, "valid")


def write_vocabulary(folder: Path) -> Any:
    """Write a dictionary with as many words as BERT's, and a table with 20 synonyms for each third word."""
    from tn_fairseq.core.dictionary import load_dictionary
    from tn_fairseq.core.synonym_table import PADDING, save_synonym_table

    (folder / "dict.txt").write_text("".join(f"word{n} 1\n" for n in range(VOCABULARY_SIZE - 5)))
    dictionary = load_dictionary(folder / "dict.txt")
    rng = np.random.default_rng(1)
    words = len(dictionary) - dictionary.nspecial - 1
    # sums, so that a word has no synonym twice and is not its own
    away = rng.integers(1, words // SYNONYMS, size=(len(dictionary), SYNONYMS)).cumsum(axis=1)
    table = dictionary.nspecial + (np.arange(len(dictionary))[:, None] - dictionary.nspecial + away) % words
    table[rng.random(len(dictionary)) < 2 / 3] = PADDING
    table[: dictionary.nspecial] = table[-1] = PADDING
    save_synonym_table(folder / "synonyms.safetensors", torch.from_numpy(table).int(), dictionary, {})
    return dictionary


def write_teacher(path: Path, arch: str, length: int, flags: Sequence[object] = ()) -> None:
    """Write an untrained model next to the data."""
    from omegaconf import OmegaConf

    from tn_fairseq.core.checkpoints import save_checkpoint

    cfg, task = set_up(path.parent, arch, length, baseline(arch), flags)
    content = {"args": None, "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)}
    save_checkpoint({**content, "model": task.build_model(cfg.model).state_dict()}, path)


def write_batches(folder: Path, arch: str, rows: int, length: int, split: str) -> dict[str, Any]:
    """Write two batches; returns the model's sizes."""
    cfg, task = set_up(folder, arch, length, baseline(arch))
    task.load_dataset(split)
    dataset = task.dataset(split)
    batches = [dataset.collater([dataset[i] for i in range(start, start + rows)]) for start in (0, rows)]
    for batch in batches:
        del batch["mask_thresholds"]  # an array, which torch.load does not read
    torch.save(batches, folder / "batches.pt")
    return {name: value for name, value in cfg.model.items() if isinstance(value, int)}


def baseline(arch: str) -> str:
    return "electra" if arch.startswith("electra") else "mlm"


def write_sentences(folder: Path, tokens: int) -> None:
    """Write random text with sentences of 1 to 49 words and documents of 25 sentences, on average."""
    from tn_fairseq.core.dictionary import load_dictionary
    from tn_fairseq.tools.preprocessing.writers import BinaryWriter

    dictionary = load_dictionary(folder / "dict.txt")
    rng = np.random.default_rng(1)
    lengths = 1 + rng.integers(1, 50, size=tokens // 25) * (rng.random(tokens // 25) > 1 / 25)
    ids = rng.integers(dictionary.nspecial, len(dictionary) - 1, size=lengths.sum())
    ids[lengths.cumsum() - 1] = dictionary.eos()
    writer = BinaryWriter(folder / "train", dictionary)
    writer.append(ids, lengths)
    writer.close()


def circumstances(device: str, threads: int) -> dict[str, Any]:
    """The command, the date and the machine, which come first in a benchmark's results."""
    command, date = shlex.join(["python", *sys.argv]), time.strftime("%Y-%m-%d")
    return {"command": command, "date": date, "machine": _machine(device, threads)}


def _machine(device: str, threads: int) -> dict[str, str]:
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (named := re.search(r"model name\s*:\s*(.+)", text := cpuinfo.read_text())):
        known = [name for name in INSTRUCTIONS if re.search(rf"\b{name}\b", text)]
        processor = f"{named[1]} ({', '.join(known)})"
    described = torch.cuda.get_device_name() if device == "cuda" else f"{processor}, {threads} threads"
    fairseq = packages_distributions()["fairseq"]  # several distributions on PyPI install this package
    versions = {name: version(name) for name in ("torch", "transformers", *fairseq, "numpy")}
    return {"device": described, "system": platform.platform(), "python": platform.python_version(), **versions}


def results_name(text: str) -> Path:
    """The name of the results, whose folder is made; raises argparse.ArgumentTypeError before anything is measured."""
    try:
        Path(text).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{Path(text).parent}: {error.strerror}; name another folder") from None
    return Path(text)


def write_results(results: dict[str, Any], output: Path) -> None:
    """Write a benchmark's results to OUTPUT.json and print the path."""
    path = output.with_name(f"{output.name}.json")
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"\nwrote {path}")


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with the first column left-aligned and the numbers right-aligned."""
    from tn_fairseq.tools.results.layout import align

    print(*align([header, *rows]), sep="\n")


if __name__ == "__main__":
    main()
