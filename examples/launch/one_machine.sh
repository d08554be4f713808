#!/usr/bin/env bash
# One model, several workers on this machine, one a GPU. Put it before the command that would train with one:
#
#   examples/launch/one_machine.sh fairseq-train data-bin --user-dir tn_fairseq ...
#   examples/launch/one_machine.sh examples/pretraining/bert_base/baseline.sh wikibooks bert_base.pt checkpoints
#   DEVICE=cpu WORKERS=2 examples/launch/one_machine.sh fairseq-train data-bin --user-dir tn_fairseq ...

set -eu
DEVICE=${DEVICE:-gpu}                                           # or cpu
WORKERS=${WORKERS:-$(nvidia-smi --list-gpus 2>/dev/null | wc -l)} # on this machine

if [[ $# -eq 0 || ! $DEVICE =~ ^(gpu|cpu)$ || ! $WORKERS =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: [DEVICE=gpu|cpu] [WORKERS=N, if not the number of GPUs] $0 fairseq-train DATA_BIN FLAG..." >&2
    exit 2
fi

flags=(--distributed-init-method env:// --distributed-world-size "$WORKERS" --distributed-rank -1 --distributed-no-spawn)
if [[ $DEVICE == cpu ]]; then
    flags+=(--cpu --distributed-backend gloo --ddp-backend legacy_ddp)
fi

exec torchrun --standalone --nproc-per-node "$WORKERS" --no-python "$@" "${flags[@]}"
