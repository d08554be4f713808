#!/usr/bin/env bash
# Table 3, row BERT_Large^HC: hard correction, continued from released weights.
# The paper's GLUE: 85.1 (CoLA 62.3, SST 93.4, MRPC 89.0, STS 90.5, QQP 91.5, MNLI 87.0, QNLI 93.0, RTE 73.7).
# Hardware: 8 GPUs such as the A100. 8 x 16 sequences x update_freq 1 = batch 128.
# Tokens: 200,000 updates x 128 sequences x 512 = 13,107,200,000.
# Time: an estimate that nobody has measured yet: 22.8 hours, if a GPU does 20,000 tokens/s.
# The same as hard_correction.yaml, as flags:
#
#   examples/pretraining/bert_large/hard_correction.sh DATA_BIN CHECKPOINT SYNONYM_TABLE SAVE_DIR [FLAG...]

set -euo pipefail
arguments="DATA_BIN CHECKPOINT SYNONYM_TABLE SAVE_DIR"
source "$(dirname "${BASH_SOURCE[0]}")/../arguments.sh"

exec fairseq-train "$DATA_BIN" --user-dir "$plugin" "${precision[@]}" \
    --task electra --tokens-per-sample 512 --mask-prob 0.15 --leave-unmasked-prob 0.1 --random-token-prob 0.1 \
    --arch bert_large \
    --criterion mlm_hard_correction --synonym-table "$SYNONYM_TABLE" \
    --optimizer electra_adamw --lr 5e-5 --clip-norm 1.0 \
    --lr-scheduler polynomial_decay --warmup-updates 10000 --total-num-update 200000 --max-update 200000 \
    --batch-size 16 --update-freq 1 --num-workers 4 \
    --distributed-world-size 8 --ddp-backend legacy_ddp \
    --finetune-from-model "$CHECKPOINT" \
    --save-dir "$SAVE_DIR" --save-interval-updates 10000 --keep-interval-updates 5 --no-epoch-checkpoints \
    --log-format simple --log-interval 100 \
    "$@"
