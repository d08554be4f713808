"""What any masked language model of ``transformers`` predicts at the masked positions."""

from typing import Any

from torch import Tensor, nn


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
    limits = [
        # those of RoBERTa start after the padding
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in core.named_modules()
        if isinstance(module, nn.Embedding) and name.endswith(("position_embeddings", "embed_positions"))
    ]
    return min(limits, default=None)
