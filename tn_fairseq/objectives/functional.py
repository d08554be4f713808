"""The objectives, the paper's and ours, as pure functions of tensors.

Losses are computed in float32, whatever the precision of the input, and have one value per position: the caller
decides which positions count, sums them, and divides. Functions that return logits keep the precision of their input. N
is the number of masked positions, V the dictionary's size.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..modules.cross_entropy import SoftCrossEntropy, cross_entropy, soft_cross_entropy, sparse_cross_entropy


def masked_lm(logits: Tensor, targets: Tensor) -> Tensor:
    """-log p(w_k | s~) at each masked position: (N, V), (N) -> (N), in nats (Eq. 1)."""
    return cross_entropy(logits, targets)


def total(values: Tensor, masked_tokens: Tensor | None = None) -> Tensor:
    """The sum of one value per position, (N) -> (), in the same order of additions as torch's ``nll_loss``.

    This order, unlike that of ``values.sum()``, makes plain masked LM bitwise equal to fairseq's ``masked_lm``. With
    ``masked_tokens``, (B, T), it is that of the models of ``transformers``, which add up all positions.
    """
    if masked_tokens is None:
        first = torch.zeros(len(values), dtype=torch.long, device=values.device)
        return F.nll_loss(-values.unsqueeze(1), first, reduction="sum")
    scattered = torch.zeros_like(masked_tokens, dtype=values.dtype).masked_scatter(masked_tokens, values)
    ignored = torch.where(masked_tokens, 0, -100).flatten()
    return F.nll_loss(-scattered.flatten().unsqueeze(1), ignored, reduction="sum")


def hard_correction(false_negative: Tensor, weight: float = 0.0) -> Tensor:
    """The weight of each position in the masked-LM loss: `weight` at false negatives, 1 elsewhere: (N) -> (N) (Eq. 2).

    A weight of 0 drops the false negatives and their gradients; a weight of 1 is the plain masked LM.
    """
    kept = torch.ones_like(false_negative, dtype=torch.float32)
    return kept.masked_fill(false_negative, weight)


def synonym_gain(logits: Tensor, targets: Tensor, synonyms: Tensor, weight: float = 1.0) -> Tensor:
    """log(1 + `weight` x sum of p(s) / p(w_k) over the synonyms s of w_k): (N, V), (N), (N, S) -> (N), in nats.

    Subtracted from the masked-LM loss, it gives -log(p(w_k) + `weight` x sum of p(s)). `synonyms` are the rows of the
    table, right-padded with negative numbers. An empty row or a weight of 0 gives 0, and no gradient.
    """
    synonym_logits = logits.gather(1, synonyms.clamp(min=0).long()).float()
    # finite, because the gradient of a row of infinities would be NaN
    synonym_logits = synonym_logits.masked_fill(synonyms < 0, torch.finfo(torch.float32).min)
    target_logits = logits.gather(1, targets.unsqueeze(1)).squeeze(1).float()
    log_weight = math.log(weight) if weight else -math.inf
    return F.softplus(synonym_logits.logsumexp(dim=1) - target_logits + log_weight)


def distillation(
    logits: Tensor, targets: Tensor, teacher_logits: Tensor, weight: float | Tensor, temperature: float = 1.0
) -> SoftCrossEntropy:
    """-sum of t_k(v) log p(v | s~) over v: (N, V), (N), (N, V) -> losses (N), in nats, with the logsumexps used.

    The target is t_k(v) = (1 - `weight`) [v = w_k] + `weight` q_k(v), where q_k is the softmax of the teacher's logits
    divided by the temperature (Hinton et al. 2015, "Distilling the Knowledge in a Neural Network"). The weight is one
    number, or one for each position, (N). A weight of 0, or a teacher that is certain of w_k, gives plain masked LM.
    The teacher gets no gradient.
    """
    # torch.as_tensor would copy a number to a GPU, and wait for it
    share = weight.float() if isinstance(weight, Tensor) else torch.full_like(targets, weight, dtype=torch.float32)
    return soft_cross_entropy(logits, targets, teacher_logits.detach(), share, temperature)


def distillation_from_draws(
    logits: Tensor, targets: Tensor, words: Tensor, shares: Tensor, weight: float
) -> tuple[Tensor, Tensor]:
    """`distillation` with an estimate of q_k: (N, V), (N), (N, K), (N, K) -> losses (N), in nats, and logsumexps (N).

    The estimate c_k gives each of the K `words` its share of the teacher's draws, and 0 to all other words, so the mean
    of the gradient is that of the complete teacher (Anshumann et al. 2025, "Sparse Logit Sampling", section 4).
    """
    gold = shares.new_full((len(targets), 1), 1 - weight)
    words, shares = torch.cat([targets.unsqueeze(1), words], dim=1), torch.cat([gold, weight * shares], dim=1)
    return sparse_cross_entropy(logits, words, shares)


def only_synonyms(teacher_logits: Tensor, targets: Tensor, synonyms: Tensor) -> Tensor:
    """The teacher's logits of w_k and its synonyms, and minus infinity elsewhere: (N, V), (N), (N, S) -> (N, V).

    `synonyms` are rows of the table, right-padded with negative numbers.
    """
    kept = torch.where(synonyms < 0, targets.unsqueeze(1), synonyms).long()
    kept = torch.cat([targets.unsqueeze(1), kept], dim=1)
    return torch.full_like(teacher_logits, -math.inf).scatter_(1, kept, teacher_logits.gather(1, kept))


def without_synonyms(teacher_logits: Tensor, targets: Tensor, synonyms: Tensor) -> Tensor:
    """The teacher's logits, and minus infinity for synonyms of w_k: (N, V), (N), (N, S) -> (N, V)."""
    index = torch.where(synonyms < 0, targets.unsqueeze(1), synonyms).long()
    values = teacher_logits.gather(1, index).masked_fill(synonyms >= 0, -math.inf)
    return teacher_logits.scatter(1, index, values)


def shuffle_wrong_words(teacher_logits: Tensor, targets: Tensor, order: Tensor, shift: Tensor) -> Tensor:
    """The same values, those of the wrong words at other wrong words: (N, V), (N), (V), (N) -> (N, V).

    Word v gets the value of word `order`[(v + `shift`) mod V], except that w_k keeps its own, and the word that would
    get it takes the one meant for w_k. `order` is a permutation; with random shifts, all words are equally likely.
    """
    size = teacher_logits.size(1)
    source = order[(torch.arange(size, device=order.device) + shift.unsqueeze(1)) % size]
    own = targets.unsqueeze(1)
    moved = teacher_logits.gather(1, source)
    # the place that got the value of w_k, before w_k gets it back
    place = source.eq(own).int().argmax(dim=1, keepdim=True)
    moved.scatter_(1, place, moved.gather(1, own))
    return moved.scatter_(1, own, teacher_logits.gather(1, own))


def target_entropy(teacher_logits: Tensor, targets: Tensor, weight: float, temperature: float = 1.0) -> Tensor:
    """The entropy of the target t_k of `distillation`: (N, V), (N) -> (N), in nats."""
    share = torch.softmax(teacher_logits.float() / temperature, dim=1).mul_(weight)
    share.scatter_add_(1, targets.unsqueeze(1), share.new_full((len(targets), 1), 1 - weight))
    return torch.special.entr(share).sum(dim=1)


def smoothing_with_entropy(entropy: Tensor, frequencies: Tensor, targets: Tensor) -> Tensor:
    """The share e with which (1 - e) [v = w_k] + e u(v) has the given entropy: (N), (V), (N) -> (N), in [0, 1].

    u are the `frequencies` of words, which sum to 1. If no share is enough, it is 1. Found by bisection, because the
    entropy is concave in e: below that of u, it is reached once.
    """
    own = frequencies[targets]
    others = torch.special.entr(frequencies).sum() - torch.special.entr(own)
    low, high = torch.zeros_like(entropy), torch.ones_like(entropy)
    for _ in range(30):  # more than the digits of float32
        middle = (low + high) / 2
        middle_entropy = (
            torch.special.entr(1 - middle * (1 - own)) + middle * others + (1 - own) * torch.special.entr(middle)
        )
        low, high = (
            torch.where(middle_entropy < entropy, middle, low),
            torch.where(middle_entropy < entropy, high, middle),
        )
    return high


def synonym_distance(embeddings: Tensor, words: Tensor, synonyms: Tensor, starts: Tensor) -> Tensor:
    """Half the squared distance from each word to the mean of its synonyms: (V, E), (W), (M), (W) -> (W).

    The `synonyms` of all words follow on each other, and those of word i begin at `starts[i]`. They get no gradient.
    """
    means = F.embedding_bag(synonyms, embeddings.detach().float(), starts, mode="mean")
    return 0.5 * (F.embedding(words, embeddings).float() - means).square().sum(dim=-1)


def soft_regularization(target_embeddings: Tensor, prediction_embeddings: Tensor) -> Tensor:
    """1 - cos(e_k, e'_k) at each masked position: (N, E), (N, E) -> (N), in [0, 2] (Eq. 3).

    For a row of zeros, the cosine is 0 and has no gradient, which would otherwise be near 1e8.
    """
    has_direction = target_embeddings.ne(0).any(dim=-1) & prediction_embeddings.ne(0).any(dim=-1)
    cosine = F.cosine_similarity(target_embeddings.float(), prediction_embeddings.float(), dim=-1)
    return 1.0 - torch.where(has_direction, cosine, 0.0)


def sentence_kl(predicted_hidden: Tensor, original_hidden: Tensor, temperature: float = 1.0) -> Tensor:
    """KL(softmax H_p || softmax H_s) at each position: (..., H), (..., H) -> (...), in nats (section 5).

    The softmax runs over the hidden dimension, after division by the temperature.
    """
    log_p = F.log_softmax(predicted_hidden.float() / temperature, dim=-1)
    log_s = F.log_softmax(original_hidden.float() / temperature, dim=-1)
    return (log_p.exp() * (log_p - log_s)).sum(dim=-1)


def replaced_token_detection(logits: Tensor, is_replaced: Tensor) -> Tensor:
    """Binary cross-entropy of "this token was replaced" at each position: (B, T), (B, T) -> (B, T), in nats.

    Source: Clark et al. 2020, section 2. The targets are booleans, or probabilities in [0, 1].
    """
    return F.binary_cross_entropy_with_logits(logits.float(), is_replaced.float(), reduction="none")


def focal_weight(logits: Tensor, is_replaced: Tensor, gamma: float) -> Tensor:
    """(1 - p)^`gamma` of the probability p of the right answer: (B, T), (B, T) boolean -> (B, T), in [0, 1].

    The factor of the focal loss (Lin et al. 2017, "Focal Loss for Dense Object Detection", Eq. 4). It is 1 for a gamma
    of 0, and has a finite gradient for every gamma.
    """
    wrong_answer_logits = torch.where(is_replaced, -logits.float(), logits.float())
    return (gamma * F.logsigmoid(wrong_answer_logits)).exp()
