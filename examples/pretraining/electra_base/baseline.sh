#!/usr/bin/env bash
# Tables 3 and 4, row ELECTRA_base: the baseline, continued from released weights.
# The paper's GLUE: 87.7 (CoLA 68.3, SST 95.3, MRPC 90.9, STS 91.3, QQP 91.7, MNLI 88.5, QNLI 93.0, RTE 82.3).
# The paper's SQuAD: EM 85.1, F1 91.6.
# Hardware: 8 GPUs such as the A100. 8 x 16 sequences x update_freq 1 = batch 128.
# Tokens: 200,000 updates x 128 sequences x 512 = 13,107,200,000.
# Time: an estimate that nobody has measured yet: 7.6 hours, if a GPU does 60,000 tokens/s.
# The same as baseline.yaml, as flags:
#
#   examples/pretraining/electra_base/baseline.sh DATA_BIN CHECKPOINT SAVE_DIR [FLAG...]

set -euo pipefail
arguments="DATA_BIN CHECKPOINT SAVE_DIR"
source "$(dirname "${BASH_SOURCE[0]}")/../arguments.sh"

exec fairseq-train "$DATA_BIN" --user-dir "$plugin" "${precision[@]}" \
    --task electra --tokens-per-sample 512 --mask-prob 0.15 --leave-unmasked-prob 0.15 --random-token-prob 0.0 \
    --arch electra_base \
    --criterion electra \
    --optimizer electra_adamw --lr 5e-5 --clip-norm 1.0 \
    --lr-scheduler polynomial_decay --warmup-updates 10000 --total-num-update 200000 --max-update 200000 \
    --batch-size 16 --update-freq 1 --num-workers 4 \
    --distributed-world-size 8 --ddp-backend legacy_ddp \
    --finetune-from-model "$CHECKPOINT" \
    --save-dir "$SAVE_DIR" --save-interval-updates 10000 --keep-interval-updates 5 --no-epoch-checkpoints \
    --log-format simple --log-interval 100 \
    "$@"
