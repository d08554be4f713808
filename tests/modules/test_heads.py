import torch
import torch.nn.functional as F

from tn_fairseq.modules.heads import AnswerHead, MaskedLMHead, ReplacedTokenHead, SentenceHead

HIDDEN = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))


def test_masked_tokens_are_scored_with_the_word_embeddings():
    head, embeddings = MaskedLMHead(8, 4, 6), torch.randn(6, 4)
    torch.nn.init.normal_(head.bias)
    hidden = HIDDEN.flatten(0, 1)
    x = F.gelu(hidden @ head.dense.weight.T + head.dense.bias)
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0)
    torch.testing.assert_close(head(hidden, embeddings), x @ embeddings.T + head.bias)


def test_each_position_is_scored_separately():
    replaced, answer = ReplacedTokenHead(8), AnswerHead(8)
    x = F.gelu(HIDDEN @ replaced.dense.weight.T + replaced.dense.bias)
    torch.testing.assert_close(replaced(HIDDEN), (x @ replaced.output.weight[0]) + replaced.output.bias)
    torch.testing.assert_close(answer(HIDDEN), HIDDEN @ answer.output.weight.T + answer.output.bias)


def test_a_sentence_is_scored_by_its_first_token():
    head = SentenceHead(8, 3, dropout=0.5)
    needed = head.needed(torch.zeros(2, 5, dtype=torch.long))
    first = HIDDEN.flatten(0, 1)[needed]
    assert torch.equal(first, HIDDEN[:, 0])
    torch.testing.assert_close(head.eval()(first), first @ head.output.weight.T + head.output.bias)
