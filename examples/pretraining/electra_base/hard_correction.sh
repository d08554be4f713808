#!/usr/bin/env bash
# Tables 3 and 4, row ELECTRA_base^HC: hard correction, continued from released weights.
# The paper's GLUE: 88.4 (CoLA 70.9, SST 95.6, MRPC 91.2, STS 91.3, QQP 92.0, MNLI 88.7, QNLI 93.6, RTE 83.8).
# The paper's SQuAD: EM 85.7, F1 92.1.
# Hardware: 8 GPUs such as the A100. 8 x 16 sequences x update_freq 1 = batch 128.
# Tokens: 200,000 updates x 128 sequences x 512 = 13,107,200,000.
# Time: an estimate that nobody has measured yet: 7.6 hours, if a GPU does 60,000 tokens/s.
# The same as hard_correction.yaml, as flags:
#
#   examples/pretraining/electra_base/hard_correction.sh DATA_BIN CHECKPOINT SYNONYM_TABLE SAVE_DIR [FLAG...]

set -euo pipefail
arguments="DATA_BIN CHECKPOINT SYNONYM_TABLE SAVE_DIR"
source "$(dirname "${BASH_SOURCE[0]}")/../arguments.sh"

exec fairseq-train "$DATA_BIN" --user-dir "$plugin" "${precision[@]}" \
    --task electra --tokens-per-sample 512 --mask-prob 0.15 --leave-unmasked-prob 0.15 --random-token-prob 0.0 \
    --arch electra_base \
    --criterion mlm_hard_correction --synonym-table "$SYNONYM_TABLE" \
    --optimizer electra_adamw --lr 5e-5 --clip-norm 1.0 \
    --lr-scheduler polynomial_decay --warmup-updates 10000 --total-num-update 200000 --max-update 200000 \
    --batch-size 16 --update-freq 1 --num-workers 4 \
    --distributed-world-size 8 --ddp-backend legacy_ddp \
    --finetune-from-model "$CHECKPOINT" \
    --save-dir "$SAVE_DIR" --save-interval-updates 10000 --keep-interval-updates 5 --no-epoch-checkpoints \
    --log-format simple --log-interval 100 \
    "$@"
