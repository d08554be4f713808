#!/usr/bin/env bash
# Tables 3 and 4, row ELECTRA_small: the baseline, from scratch.
# The paper's GLUE: 80.4 (CoLA 56.8, SST 88.3, MRPC 87.4, STS 86.8, QQP 88.3, MNLI 78.9, QNLI 87.9, RTE 68.5).
# The paper's SQuAD: EM 75.8, F1 83.9, pre-trained at length 512 (see ../README.md).
# Hardware: 1 GPU such as the A100. 1 x 128 sequences x update_freq 1 = batch 128.
# Tokens: 1,000,000 updates x 128 sequences x 128 = 16,384,000,000.
# Time: an estimate that nobody has measured yet: 4.1 days, if a GPU does 46,000 tokens/s.
# The same as baseline.yaml, as flags:
#
#   examples/pretraining/electra_small/baseline.sh DATA_BIN SAVE_DIR [FLAG...]

set -euo pipefail
arguments="DATA_BIN SAVE_DIR"
source "$(dirname "${BASH_SOURCE[0]}")/../arguments.sh"

exec fairseq-train "$DATA_BIN" --user-dir "$plugin" "${precision[@]}" \
    --task electra --tokens-per-sample 128 --mask-prob 0.15 --leave-unmasked-prob 0.15 --random-token-prob 0.0 \
    --arch electra_small \
    --criterion electra \
    --optimizer electra_adamw --lr 5e-4 --clip-norm 1.0 \
    --lr-scheduler polynomial_decay --warmup-updates 10000 --total-num-update 1000000 --max-update 1000000 \
    --batch-size 128 --update-freq 1 --num-workers 4 \
    --distributed-world-size 1 \
    --save-dir "$SAVE_DIR" --save-interval-updates 10000 --keep-interval-updates 5 --no-epoch-checkpoints \
    --log-format simple --log-interval 100 \
    "$@"
