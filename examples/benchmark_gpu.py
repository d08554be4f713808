#!/usr/bin/env python3
"""Speed of pre-training on one GPU, and whether it is correct there.

    python examples/benchmark_gpu.py --output gpu --minutes 8

The most important steps come first: fairseq-train beside a loop over the classes of transformers, in turns; compiled
models, and what takes the time in them; whether runs are repeated and resumed exactly; each objective, and where it
waits for the GPU; then the other shapes and precisions. Each step's results are added to GPU/results.json when it ends.
A step that no longer fits into the minutes is left out; the same command goes on with it. A step that fails takes one
line, and the next one starts. The text is random, with as many words as BERT has, because its content does not change
the speed.
"""

import argparse
import gc
import gzip
import hashlib
import io
import json
import math
import queue
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import benchmark
import torch
from benchmark import (
    FLAGS,
    TASK,
    TRAINING,
    Subject,
    baseline,
    circumstances,
    count_flops,
    make_our_step,
    make_peer_step,
    matrix_product_rate,
    peak_memory,
    show,
    synchronize,
    write_batches,
    write_sentences,
    write_teacher,
    write_vocabulary,
)

import tn_fairseq

WARM_UP = 20  # updates that are not timed: kernels are loaded, code is compiled, and CUDA graphs are recorded
# rows and lengths; the first one is that of most steps
SHAPES = {"electra_small": ((512, 128), (128, 128), (128, 512)), "bert_base": ((128, 128), (64, 512))}
ROUNDS = 2  # of ours and the peer, in turns
PROFILED, LARGEST_KERNELS = 5, 10  # updates, and how many kernels are printed
SIZE = ("arch", "rows", "length")
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")  # events of a trace
NO_DROPOUT = ("--dropout", "0", "--attention-dropout", "0")


class Step(NamedTuple):
    """Something to measure in the process that uses the GPU."""

    title: str
    kind: str  # a method of Measurements
    options: dict[str, Any]
    seconds: float  # that it takes on an H100, about


def main() -> None:
    """Run the steps that fit, and write results after each of them."""
    args = parse_args()
    end = time.monotonic() + 60 * args.minutes
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not args.dry_run:
        raise SystemExit("error: torch sees no GPU; check nvidia-smi, or give --dry-run")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"error: {args.output}: {error.strerror}; name another folder with --output") from None
    results = circumstances(device, torch.get_num_threads())
    results["dry run"] = args.dry_run
    results |= {"steps": earlier(args.output, results), "left out": []}
    print(f"{results['machine']['device']}, torch {results['machine']['torch']}")
    with tempfile.TemporaryDirectory() as folder:
        common = {"device": device, "threads": torch.get_num_threads(), "seconds": 0.2 if device == "cuda" else 0.01}
        common |= {"data_bin": Path(folder), "output": args.output, "dry_run": args.dry_run, "sizes": {}}
        subject = None
        for step in plan(args.dry_run):
            left = end - time.monotonic()
            if step.title in results["steps"]:
                continue
            if step.seconds > left:
                results["left out"].append(step.title)
                continue
            if subject is None:
                subject = Subject(common, Measurements, daemon=False)
                subject.ask("make")
            found = ask(subject, step, left)
            if "stopped" in found:
                subject = None
            results["steps"][step.title] = found
            print(f"{step.title}: {describe(found)}", flush=True)
            write(results, args.output)
            if step.kind == "check" and "error" in found:
                break
        if subject is not None:
            subject.process.kill()
        report(results)
        write(results, args.output)
        print(f"\nwrote {args.output / 'results.json'}")


def earlier(output: Path, results: dict[str, Any]) -> dict[str, Any]:
    """The steps of an earlier run in the same circumstances that did not fail."""
    path = output / "results.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise SystemExit(f"error: {path}: is not complete; delete it, and run the same command again") from None
    before, now = map(_conditions, (found, results))
    if before != now:
        raise SystemExit(f"error: {path}: was measured on {before}, and this is {now}; give another --output")
    return {title: one for title, one in found["steps"].items() if "error" not in one}


def _conditions(results: dict[str, Any]) -> str:
    machine = results["machine"]
    return f"{machine['device']} with torch {machine['torch']}" + ", in a dry run" * results.get("dry run", False)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="GPU", help="folder for the results")
    parser.add_argument("--minutes", type=float, default=8, metavar="N", help="stop after these (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="all steps at a tiny size, also on a CPU")
    args = parser.parse_args()
    if not args.minutes > 0:
        parser.error(f"--minutes must be positive, not {args.minutes}")
    return args


def plan(dry_run: bool) -> list[Step]:
    """All steps, the most important ones first."""
    small = ("electra_small", 128, 128)
    main, *others = ((arch, *shape) for arch, shapes in SHAPES.items() for shape in shapes)
    base = others[-2]

    def pair(precision: str, shape: tuple[str, int, int], rounds: int = 1) -> Step:
        options = {**dict(zip(SIZE, shape)), "precision": precision, "rounds": rounds}
        return Step("{} {}x{} {}".format(*shape, precision), "pair", options, 30 * rounds)

    def train(title: str, *flags: str, shape: tuple[str, int, int] = main, seconds: float = 17, **options: Any) -> Step:
        """A training, or a profile of one, with flags of fairseq-train."""
        title = "{} {} {}x{} {}".format(title, *shape, options.get("precision", "bfloat16"))
        options |= {**dict(zip(SIZE, shape)), "flags": [*flags]}
        return Step(title, "profile" if title.startswith("profile") else "train", options, seconds)

    def compiled(shape: tuple[str, int, int], *flags: str) -> Step:
        return train(" ".join(["profile, compiled", *flags]), "--compile-model", *flags, shape=shape, seconds=100)

    def each_objective(precision: str) -> list[Step]:
        return [
            train(name, *flags, shape=small, criterion=name, precision=precision, check_sync=True)
            for name, flags in objectives().items()
        ]

    def repeat(precision: str) -> Step:
        return Step(f"repeated and resumed {precision}", "repeat", {"precision": precision}, 55)

    def matrix(precision: str) -> Step:
        return Step(f"matrix products {precision}", "matrix", {"precision": precision}, 3)

    steps = [Step("check", "check", {}, 35), matrix("bfloat16")]
    steps += [pair("bfloat16", main, ROUNDS), compiled(main), pair("bfloat16", base), compiled(base)]
    steps += [repeat("bfloat16"), *each_objective("bfloat16")]
    steps += [pair("bfloat16", shape) for shape in others if shape != base]
    steps += [compiled(small), train("profile")]
    steps += [
        train("segments", "--sample-break-mode", "segments"),
        train("without dropout", *NO_DROPOUT),
        train("segments without dropout", "--sample-break-mode", "segments", *NO_DROPOUT),
        train("4 loader workers", "--num-workers", "4"),
    ]
    steps.append(compiled(small, "--update-freq", "2"))
    for precision in ("float16", "float32"):
        steps += [matrix(precision), *(pair(precision, shape) for shape in (main, *others))]
        steps += [repeat(precision), *each_objective(precision)]
    steps.append(Step("compiled peer", "peer", {**dict(zip(SIZE, main)), "compiled": True}, 100))
    return [tiny(step) for step in steps] if dry_run else steps


def tiny(step: Step) -> Step:
    """The same step in a second on a CPU."""
    small = {"arch": "bert_tiny" if "bert" in step.options.get("arch", "") else "electra_tiny", "rows": 4, "length": 16}
    changed = {name: value for name, value in small.items() if name in step.options}
    return step._replace(options={**step.options, **changed, **({"rounds": 1} if "rounds" in step.options else {})})


def objectives() -> dict[str, list[str]]:
    """The criteria and the flags that they need besides the table."""
    from tn_fairseq.objectives import OBJECTIVES

    flags = {name: ["--distillation-teacher", "TEACHER"] if name == "mlm_distillation" else [] for name in OBJECTIVES}
    del flags["mlm_merged_synonyms"]  # for text with exact synonyms only
    return flags


def ask(subject: Subject, step: Step, left: float) -> dict[str, Any]:
    """What the process answers in time, or why there is no answer; it is stopped then."""
    subject.send("measure", step.kind, step.options)
    try:
        if subject.connection.poll(min(left, 2 * step.seconds + 30)):
            return subject.connection.recv()
        reason = "took too long"
    except EOFError:
        reason = "the process died"
    subject.process.kill()
    return {"error": reason, "stopped": True}


class Measurements:
    """The steps. They share a process, because Python and torch take long to start."""

    def __init__(self, common: dict[str, Any]):
        self.common, self.folder = common, common["data_bin"]
        self.flops: dict[tuple[str, int], float] = {}
        write_vocabulary(self.folder)
        tokens = 10_000 if common["dry_run"] else 4_500_000
        write_sentences(self.folder, tokens)
        self.updates = 4 if common["dry_run"] else 60
        self.warm_up = 1 if common["dry_run"] else WARM_UP

    def measure(self, kind: str, options: dict[str, Any]) -> dict[str, Any]:
        """The results of a step, or its error in one line; the memory is free again."""
        start = time.monotonic()
        try:
            found = getattr(self, kind)(**options)
        except torch.cuda.OutOfMemoryError as error:
            found = {"error": f"does not fit into the memory: {str(error).splitlines()[0]}"}
        except BaseException as error:  # the step may call sys.exit
            lines = str(error).strip().splitlines() or [""]
            found = {"error": f"{type(error).__name__}: {lines[0]}", "details": lines[:40]}
        free_memory()
        return found | {"seconds": round(time.monotonic() - start, 1)}

    def check(self) -> dict[str, Any]:
        return self.train("electra_tiny", 8, 16, updates=4)

    def matrix(self, precision: str) -> dict[str, Any]:
        sizes = {self.common["device"]: 64} if self.common["dry_run"] else benchmark.MATRIX_SIZES
        with mock.patch.object(benchmark, "MATRIX_SIZES", sizes):
            return {"FLOP/s": matrix_product_rate(self.common | {"precision": precision})}

    def pair(self, precision: str, arch: str, rows: int, length: int, rounds: int) -> dict[str, Any]:
        """fairseq-train and the loop over transformers, in turns, each with the largest batch that fits."""
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(self.fitting(self.train, arch, rows, length, precision))
            theirs.append(self.fitting(self.peer, arch, rows, length, precision))
        found = {"ours": best(ours), "peer": best(theirs)}
        return found | {"ratio": found["ours"]["tokens/s"] / found["peer"]["tokens/s"]}

    def fitting(self, run: Any, arch: str, rows: int, length: int, precision: str) -> dict[str, Any]:
        while True:
            try:
                return run(arch, rows, length, precision=precision)
            except torch.cuda.OutOfMemoryError:
                free_memory()
                if rows == 1:
                    raise
                rows //= 2

    def peer(self, arch: str, rows: int, length: int, precision: str = "bfloat16", compiled: bool = False) -> dict:
        """A loop over the classes of transformers."""
        common = self.shape(arch, rows, length, precision)
        step = make_peer_step(common, compiled=compiled)
        for _ in range(self.warm_up):
            step()
        reset_peak()
        synchronize(self.common)
        start = time.perf_counter()
        for _ in range(self.updates):
            step()
        synchronize(self.common)
        seconds = (time.perf_counter() - start) / self.updates
        return {"tokens/s": rows * length / seconds, "peak bytes": peak_memory(self.common), "rows": rows}

    def train(
        self,
        arch: str,
        rows: int,
        length: int,
        flags: Sequence[str] = (),
        precision: str = "bfloat16",
        criterion: str = "",
        updates: int | None = None,
        check_sync: bool = False,
        profiler: Any = None,
        profiled: int = 0,
    ) -> dict[str, Any]:
        """fairseq-train: its speed from the end of the warm-up on, its memory, its loss and the time without a batch.

        The objectives with a synonym table or a teacher get those. The last updates are ``profiled`` and not timed.
        """
        from fairseq_cli.train import cli_main

        tn_fairseq.register()  # it was imported before fairseq
        criterion = criterion or baseline(arch)
        updates = updates or self.updates
        words = [self.folder, "--user-dir", Path(tn_fairseq.__file__).parent, *TASK]
        words += ["--arch", arch, "--tokens-per-sample", length, "--batch-size", rows]
        words += ["--criterion", criterion, *self.table(criterion), *TRAINING.split()]
        words += ["--max-update", updates + profiled, *FLAGS[precision], "--disable-validation"]
        words += ["--no-epoch-checkpoints", "--log-format", "none", "--save-dir", self.folder / "checkpoints"]
        words += [] if "--save" in flags else ["--no-save"]
        words += [self.teacher(arch) if word == "TEACHER" else word for word in flags if word != "--save"]
        words += ["--distributed-world-size", 1] if torch.cuda.is_available() else ["--cpu"]  # this process, on one GPU
        recorder = Recorder(self.common, min(self.warm_up, updates // 2), updates, profiler)
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(sys, "argv", ["fairseq-train", *map(str, words)]))
            for patch in recorder.patches(check_sync):
                stack.enter_context(patch)
            printed = stack.enter_context(io.StringIO())
            stack.enter_context(redirect_stdout(printed))
            stack.enter_context(redirect_stderr(printed))
            reset_peak()
            try:
                cli_main()
            except SystemExit as error:
                raise RuntimeError(f"fairseq-train: {error}") from None
            found = recorder.results()
            stop_loaders()
        found |= {"peak bytes": peak_memory(self.common), "rows": rows, "weights": weights(recorder.trainer)}
        return found | {"FLOP a token": self.flops_of(arch, length)}

    def profile(self, arch: str, rows: int, length: int, flags: Sequence[str]) -> dict[str, Any]:
        """Its speed, and then the kernels that take longest, and how long the GPU has nothing to do."""
        from torch.profiler import ProfilerActivity, profile, schedule

        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
        phases = schedule(wait=self.updates, warmup=1, active=PROFILED)
        with profile(activities=activities, schedule=phases) as profiler:
            found = self.train(arch, rows, length, flags, profiler=profiler, profiled=PROFILED + 2)
        trace = self.common["output"] / f"{'-'.join(['trace', arch, str(rows), str(length), *flags])}.json.gz"
        profiler.export_chrome_trace(str(trace))
        with gzip.open(trace, "rt", encoding="utf-8") as file:
            return found | summarize_trace(json.load(file)["traceEvents"])

    def repeat(self, precision: str) -> dict[str, Any]:
        """Whether a run with the same seed has the same weights, and whether one that resumes has them."""
        half, size = self.updates // 2, {"arch": "electra_small", "rows": 32, "length": 128, "precision": precision}
        size |= {"arch": "electra_tiny", "rows": 4, "length": 16} if self.common["dry_run"] else {}
        run, saved = partial(self.train, **size), self.folder / precision
        first, second = run(), run()
        run(flags=["--save", "--save-dir", str(saved), "--save-interval-updates", str(half)], updates=half)
        resumed = run(flags=["--restore-file", str(saved / "checkpoint_last.pt")])
        return {
            "repeated exactly": first["weights"] == second["weights"],
            "resumed exactly": first["weights"] == resumed["weights"],
            "last losses": [one["first and last loss"][1] for one in (first, second, resumed)],
        }

    def shape(self, arch: str, rows: int, length: int, precision: str) -> dict[str, Any]:
        """What the steps of benchmark.py need, with batches of this shape."""
        sizes = write_batches(self.folder, arch, rows, length, "train")
        return self.common | {"arch": arch, "length": length, "precision": precision, "sizes": sizes}

    def flops_of(self, arch: str, length: int) -> float:
        """Floating-point operations in matrix products for each token."""
        if (arch, length) not in self.flops:
            common = self.shape(arch, 4, length, "float32")
            step = make_our_step(common, baseline(arch), NO_DROPOUT)
            self.flops[arch, length] = count_flops(step) / (4 * length)
        return self.flops[arch, length]

    def table(self, criterion: str) -> list[Any]:
        plain = criterion in ("electra", "mlm", "mlm_distillation")
        return [] if plain else ["--synonym-table", self.folder / "synonyms.safetensors"]

    def teacher(self, arch: str) -> Path:
        """A checkpoint of the same size, with random weights."""
        path = self.folder / f"{arch}.pt"
        if not path.exists():
            write_teacher(path, arch, 128)
        return path


class Recorder:
    """Records the updates of a fairseq-train in this process, while its ``patches`` are active."""

    def __init__(self, common: dict[str, Any], warm_up: int, updates: int, profiler: Any):
        self.common, self.profiler = common, profiler
        self.warm_up, self.updates = warm_up, updates  # the time begins after the first ones, and ends after these
        self.began = time.perf_counter()
        self.starts: list[float] = []
        self.synchronizations: list[str] = []  # where the CPU waited for the GPU
        self.tokens: list[int] = []
        self.losses: list[float] = []
        self.waits: list[float] = []  # for a batch
        self.trainer: Any = None

    def patches(self, check_sync: bool) -> list[Any]:
        """What replaces the functions of fairseq and torch that are recorded."""
        from fairseq.data.iterators import BufferedIterator
        from fairseq.tasks.fairseq_task import FairseqTask
        from fairseq.trainer import Trainer

        step, batch_of, forward = Trainer.train_step, BufferedIterator.__next__, FairseqTask.train_step

        def timed_step(trainer: Any, samples: Any, *args: Any, **options: Any) -> Any:
            if len(self.starts) in (self.warm_up, self.updates):
                synchronize(self.common)
            self.starts.append(time.perf_counter())
            self.tokens.append(sum(sample["ntokens"] for sample in samples))
            found = step(trainer, samples, *args, **options)
            self.losses.append(float((found or {}).get("loss", math.nan)))
            self.trainer = trainer
            if self.profiler:
                self.profiler.step()
            return found

        def timed_batch(iterator: Any) -> Any:
            start = time.perf_counter()
            found = batch_of(iterator)
            self.waits.append(time.perf_counter() - start)
            return found

        def checked(task: Any, *args: Any, **options: Any) -> Any:
            if not 0 < len(self.losses) < self.warm_up:  # the first update moves the objective's tensors
                return forward(task, *args, **options)
            with recorded_synchronizations(self.synchronizations):
                return forward(task, *args, **options)

        return [
            mock.patch.object(Trainer, "train_step", timed_step),
            mock.patch.object(BufferedIterator, "__next__", timed_batch),
            mock.patch.object(FairseqTask, "train_step", checked if check_sync else forward),
            # fairseq resets it in every update
            mock.patch.object(torch.cuda, "reset_peak_memory_stats", lambda *_: None),
        ]

    def results(self) -> dict[str, Any]:
        """The speed and the losses, as soon as the training ends."""
        synchronize(self.common)
        end = min(self.updates, len(self.starts))  # a resumed run makes fewer updates
        seconds = [*self.starts, time.perf_counter()][end] - self.starts[self.warm_up]
        found: dict[str, Any] = {
            "tokens/s": sum(self.tokens[self.warm_up : end]) / seconds,
            "ms an update": 1e3 * seconds / (end - self.warm_up),
            # the first batch after the warm-up came before its time began
            "share of the time without a batch": sum(self.waits[self.warm_up + 1 : end]) / seconds,
            "first and last loss": [self.losses[0], self.losses[-1]],
            "seconds before the first update": self.starts[0] - self.began,
        }
        if self.synchronizations:
            found["synchronizations"] = dict(Counter(self.synchronizations))
        bad = [number for number, loss in enumerate(self.losses, 1) if not math.isfinite(loss)]
        # half precision may skip an update while it looks for its scale
        return found | ({"updates without a finite loss": bad} if bad else {})


def summarize_trace(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The kernels of a trace that take longest, and the share of the time in which there is one."""
    kernels: dict[str, list[float]] = {}
    busy, begin, last = 0.0, math.inf, -math.inf
    for event in sorted((one for one in events if one.get("cat") in KERNELS), key=lambda one: one["ts"]):
        start, end = event["ts"], event["ts"] + event["dur"]
        kernels.setdefault(event["name"], []).append(event["dur"])
        begin, busy, last = min(begin, start), busy + max(0.0, end - max(start, last)), max(last, end)
    longest = sorted(kernels.items(), key=lambda item: -sum(item[1]))[:LARGEST_KERNELS]
    return {
        "share of the time in which the GPU works": busy / (last - begin) if kernels else None,
        "ms of kernels an update": busy / 1e3 / PROFILED,
        "kernels an update": sum(map(len, kernels.values())) / PROFILED,
        "longest": [
            {"kernel": name, "times": len(spent) / PROFILED, "share": sum(spent) / busy} for name, spent in longest
        ],
    }


def best(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The turn with the median speed, and the least and the largest speed."""
    speeds = sorted(turn["tokens/s"] for turn in turns)
    return {**turns[-1], "tokens/s": statistics.median(speeds), "least and most": [speeds[0], speeds[-1]]}


def reset_peak() -> None:
    if torch.cuda.is_available():
        torch.cuda.memory.reset_peak_memory_stats()


def free_memory() -> None:
    torch._dynamo.reset()
    with mock.patch("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.1):  # the patience with loader processes
        gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def weights(trainer: Any) -> str:
    """A digest of the model's weights."""
    digest = hashlib.sha256()
    for tensor in trainer.get_model().state_dict().values():
        digest.update(tensor.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


@contextmanager
def recorded_synchronizations(places: list[str]) -> Iterator[None]:
    """Add to ``places`` the lines of code that make the CPU wait for the GPU."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
    places += [f"{one.filename}:{one.lineno}" for one in caught if "synchronizing CUDA" in str(one.message)]


def stop_loaders() -> None:
    """End fairseq's threads that prepare batches; a run that stops inside an epoch leaves them waiting."""
    from fairseq.data.iterators import BackgroundConsumer

    def stop(*_: Any) -> None:
        raise SystemExit

    for thread in threading.enumerate():
        while isinstance(thread, BackgroundConsumer) and thread.is_alive():
            thread._queue.put = stop
            with suppress(queue.Empty):
                thread._queue.get(timeout=0.01)  # make room for the batch with which it waits


def describe(found: Mapping[str, Any]) -> str:
    """A step's results in one line."""
    if "error" in found:
        return f"failed: {found['error']}"
    if "ratio" in found:
        ours, peer = (f"{found[name]['tokens/s']:,.0f}" for name in ("ours", "peer"))
        return f"{ours} tokens/s, peer {peer}, ratio {found['ratio']:.2f}"
    for name, form in (("tokens/s", "{:,.0f} tokens/s"), ("FLOP/s", "{:.3g} FLOP/s")):
        if name in found:
            return form.format(found[name])
    return ", ".join(f"{name}: {value}" for name, value in found.items() if name != "longest")


def report(results: Mapping[str, Any]) -> None:
    """Print the tables."""
    steps = results["steps"]
    rates = {precision: steps.get(f"matrix products {precision}", {}).get("FLOP/s") for precision in FLAGS}
    rows = []
    for title, found in steps.items():
        for name in ("ours", "peer") if "ratio" in found else ():
            one, precision = found[name], title.rpartition(" ")[2]
            share = one["tokens/s"] * found["ours"]["FLOP a token"] / rates[precision] if rates[precision] else math.nan
            waits = one.get("share of the time without a batch")
            rows.append(
                [f"{title}, {name}", f"{one['tokens/s']:,.0f}", f"{found['ratio']:.2f}" if name == "ours" else ""]
                + [f"{share:.0%}" if name == "ours" else "", f"{one['peak bytes'] / 1e9:.1f}"]
                + [f"{waits:.1%}" if waits is not None else ""]
            )
    if rows:
        print()
        show(["", "tokens/s", "ratio", "of matrix rate", "peak GB", "waits for batches"], rows)
    base = steps.get("mlm electra_small 128x128 bfloat16", {}).get("ms an update")
    costs = [
        [title.partition(" ")[0], f"{found['ms an update']:,.1f}", f"{found['ms an update'] / base:.3f}"]
        for title, found in steps.items()
        if base and title.endswith(" electra_small 128x128 bfloat16") and "ms an update" in found
    ]
    if costs:
        print()
        show(["update of electra_small, 128 x 128", "ms", "ratio"], costs)
    for title, found in steps.items():
        if found.get("longest"):
            busy = found["share of the time in which the GPU works"]
            print(
                f"\n{title}: {found['kernels an update']:,.0f} kernels an update; the GPU works {busy:.0%} of the time"
            )
        for kernel in found.get("longest", []):
            print(f"{kernel['share']:6.1%} {kernel['times']:6.1f} x {kernel['kernel'][:100]}")
        for place, times in found.get("synchronizations", {}).items():
            print(f"{title} waits for the GPU at {place}, {times} times")
    if results["left out"]:
        print(f"\nleft out, because the time is over: {', '.join(results['left out'])}")


def write(results: Mapping[str, Any], output: Path) -> None:
    (output / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
