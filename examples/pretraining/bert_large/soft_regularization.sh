#!/usr/bin/env bash
# Table 3, row BERT_Large^SR: soft regularization, continued from released weights.
# The paper's GLUE: 85.1 (CoLA 62.3, SST 94.2, MRPC 89.2, STS 90.1, QQP 91.4, MNLI 87.0, QNLI 92.8, RTE 74.0).
# Hardware: 8 GPUs such as the A100. 8 x 16 sequences x update_freq 1 = batch 128.
# Tokens: 200,000 updates x 128 sequences x 512 = 13,107,200,000.
# Time: an estimate that nobody has measured yet: 22.8 hours, if a GPU does 20,000 tokens/s.
# The same as soft_regularization.yaml, as flags:
#
#   examples/pretraining/bert_large/soft_regularization.sh DATA_BIN CHECKPOINT SAVE_DIR [FLAG...]

set -euo pipefail
arguments="DATA_BIN CHECKPOINT SAVE_DIR"
source "$(dirname "${BASH_SOURCE[0]}")/../arguments.sh"

exec fairseq-train "$DATA_BIN" --user-dir "$plugin" "${precision[@]}" \
    --task electra --tokens-per-sample 512 --mask-prob 0.15 --leave-unmasked-prob 0.1 --random-token-prob 0.1 \
    --arch bert_large \
    --criterion mlm_soft_reg \
    --optimizer electra_adamw --lr 5e-5 --clip-norm 1.0 \
    --lr-scheduler polynomial_decay --warmup-updates 10000 --total-num-update 200000 --max-update 200000 \
    --batch-size 16 --update-freq 1 --num-workers 4 \
    --distributed-world-size 8 --ddp-backend legacy_ddp \
    --finetune-from-model "$CHECKPOINT" \
    --save-dir "$SAVE_DIR" --save-interval-updates 10000 --keep-interval-updates 5 --no-epoch-checkpoints \
    --log-format simple --log-interval 100 \
    "$@"
