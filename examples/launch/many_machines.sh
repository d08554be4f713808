#!/usr/bin/env bash
# Train one model on several machines, with one worker per GPU. Start this on each machine with the same variables and
# the same command. The machines must share the data, the synonym table and the checkpoint folder.
#
#   MACHINES=2 FIRST_MACHINE=node1 examples/launch/many_machines.sh fairseq-train data-bin --user-dir tn_fairseq ...

set -eu
MACHINES=${MACHINES:-}           # number of machines
FIRST_MACHINE=${FIRST_MACHINE:-} # name of one of them, as the others know it
PORT=${PORT:-29500}              # must be free on that machine
DEVICE=${DEVICE:-gpu}            # or cpu
WORKERS=${WORKERS:-$(nvidia-smi --list-gpus 2>/dev/null | wc -l)} # on each machine

if [[ $# -eq 0 || ! $DEVICE =~ ^(gpu|cpu)$ || ! $WORKERS =~ ^[1-9][0-9]*$ || ! $MACHINES =~ ^[1-9][0-9]*$ ||
    -z $FIRST_MACHINE ]]; then
    echo "usage: MACHINES=N FIRST_MACHINE=NAME [PORT=N] [DEVICE=gpu|cpu] [WORKERS=N, if not the number of GPUs]" \
        "$0 fairseq-train DATA_BIN FLAG..." >&2
    exit 2
fi

flags=(--distributed-init-method env:// --distributed-world-size "$((MACHINES * WORKERS))" --distributed-rank -1)
flags+=(--distributed-no-spawn)
if [[ $DEVICE == cpu ]]; then
    flags+=(--cpu --distributed-backend gloo --ddp-backend legacy_ddp)
fi

exec torchrun --nnodes "$MACHINES" --nproc-per-node "$WORKERS" \
    --rdzv-backend c10d --rdzv-endpoint "$FIRST_MACHINE:$PORT" --rdzv-id tn_fairseq \
    --no-python "$@" "${flags[@]}"
