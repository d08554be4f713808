# Sourced by the recipes. Reads the arguments that $arguments names (DATA_BIN and so on) from the command line into
# variables of these names, and leaves the flags that follow in "$@".
#
# $precision is half precision unless the environment says otherwise: PRECISION="" is float32.

for argument in $arguments; do
    if [[ $# -eq 0 || -z $1 || $1 == -* ]]; then
        echo "usage: $0 $arguments [FLAG...]" >&2
        exit 2
    fi
    printf -v "$argument" %s "$1"
    shift
done

# once there is something to resume, the checkpoint that the run began from is not read again
if [[ $arguments == *CHECKPOINT* && ! -f $CHECKPOINT && ! -f $SAVE_DIR/checkpoint_last.pt ]]; then
    echo "error: there is no $CHECKPOINT; python -m tn_fairseq.huggingface import writes it" >&2
    exit 1
fi

plugin="$(dirname "${BASH_SOURCE[0]}")/../../tn_fairseq"
read -ra precision <<<"${PRECISION---fp16 --fp16-no-flatten-grads}"
