#!/usr/bin/env bash
# Train a recipe of this folder on all GPUs of this machine, with --cpu on its CPU, or with a script of ../launch:
#
#   run.sh RECIPE data=FOLDER save_dir=FOLDER [checkpoint=FILE] [synonym_table=FILE] [--cpu] [SECTION.NAME=VALUE...]
#
# RECIPE is a YAML file without its extension, such as bert_base/hard_correction. SECTION.NAME=VALUE changes a setting
# of that file. The batch size is the same for any number of workers, because run.sh computes optimization.update_freq.

set -eu
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
plugin=$(dirname "$(dirname "$folder")")/tn_fairseq

fail() {
    echo "error: $*" >&2
    exit 1
}

absolute() { # PATH
    if [[ $1 == /* ]]; then echo "$1"; else echo "$PWD/$1"; fi
}

quoted() { # VALUE: without quotes Hydra reads commas, colons and brackets as syntax
    echo "'${1//\'/\\\'}'"
}

in_recipe() { # NAME: the value of a setting in the YAML file
    sed -nE "s/^  $1: \[?([^]]+)\]?$/\1/p" "$folder/$recipe.yaml"
}

guide=$(dirname "$plugin")/docs/train.md
recipe=${1:-}
if [[ -z $recipe || ! -f $folder/$recipe.yaml ]]; then
    recipes=$(cd "$folder" && echo */*.yaml)
    fail "unknown recipe '$recipe'; the first argument must be one of: ${recipes//.yaml/}"
fi
shift

data="" save_dir="" checkpoint="" synonym_table="" cpu="" workers="" batch_size="" update_freq=""
settings=()
while [[ $# -gt 0 ]]; do
    case $1 in
        data=*) data=${1#*=} ;;
        save_dir=*) save_dir=${1#*=} ;;
        checkpoint=*) checkpoint=${1#*=} ;;
        synonym_table=*) synonym_table=${1#*=} ;;
        # The launch scripts append flags of fairseq-train.
        --cpu) cpu=yes ;;
        --distributed-no-spawn) settings+=(distributed_training.distributed_no_spawn=true) ;;
        --distributed-* | --ddp-backend)
            [[ $# -gt 1 ]] || fail "$1 needs a value"
            name=${1#--}
            settings+=("distributed_training.${name//-/_}=$2")
            shift
            ;;
        [a-z+~]*.*=*) settings+=("$1") ;;
        *) fail "unknown argument '$1'; settings are given as in the YAML file, for example dataset.batch_size=8" ;;
    esac
    shift
done

[[ -n $data ]] || fail "$recipe needs data=FOLDER, the output of binarize; see $guide"
[[ -n $save_dir ]] || fail "$recipe needs save_dir=FOLDER, the folder for checkpoints"
[[ ! -e $save_dir || -d $save_dir ]] || fail "save_dir=$save_dir is not a folder"

IFS=: read -ra shards <<<"$data"
data=""
for shard in "${shards[@]}"; do
    [[ -d $shard ]] || fail "data=$shard does not exist or is not a folder; create it with binarize, see $guide"
    data+=${data:+:}$(absolute "$shard")
done
overrides=("common.user_dir=$(quoted "$plugin")" "task.data=$(quoted "$data")")
overrides+=("checkpoint.save_dir=$(quoted "$(absolute "$save_dir")")")

if [[ -n $(in_recipe finetune_from_model) ]]; then
    [[ -n $checkpoint ]] || fail "$recipe needs checkpoint=FILE, the output of tn-fairseq exchange import"
    # A run that resumes does not read it again.
    [[ -f $checkpoint || -f $save_dir/checkpoint_last.pt ]] ||
        fail "checkpoint=$checkpoint does not exist; create it with tn-fairseq exchange import"
    overrides+=("checkpoint.finetune_from_model=$(quoted "$(absolute "$checkpoint")")")
elif [[ -n $checkpoint ]]; then
    fail "$recipe trains from scratch; leave out checkpoint=$checkpoint"
fi

if [[ -n $synonym_table ]]; then
    [[ -f $synonym_table ]] || fail "synonym_table=$synonym_table does not exist; to build it, see $guide"
    overrides+=("++criterion.synonym_table=$(quoted "$(absolute "$synonym_table")")")
elif [[ -n $(in_recipe synonym_table) ]]; then
    fail "$recipe needs synonym_table=FILE; to build it, see $guide"
fi

command -v fairseq-hydra-train >/dev/null ||
    fail "fairseq-hydra-train is not on the PATH; activate the environment in which tn_fairseq is installed"

for setting in ${settings[@]+"${settings[@]}"}; do
    case $setting in
        distributed_training.distributed_world_size=*) workers=${setting#*=} ;;
        dataset.batch_size=*) batch_size=${setting#*=} ;;
        optimization.update_freq=*) update_freq=${setting#*=} ;;
    esac
done

if [[ -n $cpu ]]; then
    overrides+=(common.cpu=true common.fp16=false) # half precision needs a GPU
    workers=${workers:-1}
elif [[ -z $workers ]]; then
    workers=$(python -c "import torch; print(torch.cuda.device_count())" 2>/dev/null) ||
        fail "python cannot import torch; activate the environment in which tn_fairseq is installed"
    [[ $workers != 0 ]] || fail "torch finds no GPU; give --cpu to try the recipe on the CPU"
fi
[[ $workers =~ ^[1-9][0-9]*$ ]] || fail "the number of workers must be positive, not '$workers'"
overrides+=("distributed_training.distributed_world_size=$workers")

if [[ -z $update_freq ]]; then
    batch=$(($(in_recipe distributed_world_size) * $(in_recipe batch_size) * $(in_recipe update_freq)))
    if [[ -z $batch_size ]]; then
        batch_size=$(in_recipe batch_size)
        [[ $((workers * batch_size)) -le $batch ]] || batch_size=$((batch / workers))
        overrides+=("dataset.batch_size=$batch_size")
    fi
    [[ $batch_size =~ ^[1-9][0-9]*$ && $((batch % (workers * batch_size))) == 0 ]] ||
        fail "$workers workers with dataset.batch_size=$batch_size cannot make a batch of $batch; change one" \
            "of them, or choose another batch with optimization.update_freq=[N]"
    overrides+=("optimization.update_freq=[$((batch / workers / batch_size))]")
fi

exec fairseq-hydra-train --config-dir "$folder/${recipe%/*}" --config-name "${recipe##*/}" "${overrides[@]}" \
    ${settings[@]+"${settings[@]}"}
