#!/usr/bin/env bash
# Train one model on this machine, with one worker per GPU. Put this before the command that trains with one worker:
#
#   examples/launch/one_machine.sh fairseq-train data-bin --user-dir tn_fairseq ...
#   examples/launch/one_machine.sh examples/pretraining/run.sh electra_small/baseline data=data-bin save_dir=checkpoints
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
