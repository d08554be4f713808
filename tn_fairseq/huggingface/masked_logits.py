"""What any masked language model of ``transformers`` predicts at the masked positions."""

from typing import Any

from torch import Tensor


def masked_logits(core: Any, masked_tokens: Tensor, **inputs: Any) -> Tensor:
    """The logits at the masked positions only, because those of all positions take gigabytes: (B, T) -> (N, V)."""

    def select(module: Any, args: Any, output: Any) -> Any:
        # a head scores each position by itself, so it can get the masked ones of all texts as one text
        output.last_hidden_state = output.last_hidden_state[masked_tokens].unsqueeze(0)
        return output

    # removed at the end, because the caller may also use the model in other ways
    hook = core.base_model.register_forward_hook(select)
    try:
        return core(return_dict=True, **inputs).logits.squeeze(0)
    finally:
        hook.remove()


def has_token_types(core: Any) -> bool:
    """Whether the model tells segments apart; those with one type, such as RoBERTa, accept no other."""
    return getattr(core.config, "type_vocab_size", 0) > 1


def max_positions(core: Any) -> int | None:
    """The longest text that the model reads, in tokens: the size of its position embeddings; None if it has none."""
    limits = []
    for name, module in core.named_modules():
        if name.endswith(("position_embeddings", "embed_positions")):
            positions = getattr(core.get_submodule(name.rpartition(".")[0]), "position_ids", None)
            # Nystromformer has more embeddings than positions, and I-BERT embeddings of its own kind
            sizes = [getattr(module, "num_embeddings", None), None if positions is None else positions.size(-1)]
            # those of RoBERTa start after the padding
            first = 0 if getattr(module, "padding_idx", None) is None else module.padding_idx + 1
            limits += [size - first for size in sizes if size is not None]
    return min(limits, default=None)
