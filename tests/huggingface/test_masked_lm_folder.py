"""Models of ``transformers`` predict the masked words of a data-bin as their imported checkpoints do."""

import json
import shutil

import pytest
import torch
from files import refused
from helpers import write_table
from huggingface_models import OTHERS, PIECES, make_other, save_models, write_vocabulary

from tn_fairseq.commands.look_analysis import main as analysis
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.huggingface.masked_lm_folder import UNLIMITED, find_folders, load_folder
from tn_fairseq.huggingface.vocabulary_files import read_data_bin
from tn_fairseq.models.loading import Checkpoint, load
from tn_fairseq.objectives.mlm_soft_reg import input_word_embeddings
from tn_fairseq.tools.look.predictions import batches_of, load_split, masked_batches, predict


def predictions(loaded, data_bin):
    dataset = load_split(loaded, data_bin, "valid")
    none = torch.zeros(len(loaded.task.dictionary), dtype=torch.bool)
    batches = masked_batches(dataset, batches_of(loaded, dataset, 64), 1)
    return [batch.masked for batch in predict(loaded, batches, False, none)]


@pytest.fixture(scope="module")
def imported(released, wordpiece_bin, tmp_path_factory):
    path = tmp_path_factory.mktemp("imported") / "bert.pt"
    import_model(released / "bert", wordpiece_bin, path, max_positions=128)
    return path


def test_predictions_are_those_of_the_imported_checkpoint(imported, released, wordpiece_bin):
    checkpoint, folder = load(Checkpoint(imported, 0), wordpiece_bin), load_folder(released / "bert", wordpiece_bin)
    theirs, ours = predictions(checkpoint, wordpiece_bin), predictions(folder, wordpiece_bin)
    assert len(ours) == len(theirs) and sum(len(one.targets) for one in ours) > 50
    for one, other in zip(ours, theirs):
        assert torch.equal(one.text, other.text) and torch.equal(one.masked_tokens, other.masked_tokens)
        known = one.logits.isfinite()
        assert (~known).any(dim=0).sum() <= 1  # a symbol of the dictionary that the tokenizer lacks
        torch.testing.assert_close(one.logits[known], other.logits[known], rtol=1e-4, atol=1e-4)
        assert torch.equal(one.predictions, other.predictions)
    torch.testing.assert_close(
        input_word_embeddings(folder.model).weight, input_word_embeddings(checkpoint.model).weight.detach()
    )


def test_a_folder_is_a_teacher_with_the_probabilities_of_the_imported_checkpoint(
    imported, released, wordpiece_bin, tmp_path
):
    table = write_table(tmp_path / "empty.safetensors", read_data_bin(wordpiece_bin)[0], {})
    words = [wordpiece_bin, "--path", imported, "--synonym-table", table, "--mask-seeds", 1]

    def analyze(teacher) -> None:
        analysis([str(word) for word in (*words, "--teacher", teacher, "--output", tmp_path / "report")])

    analyze(released / "bert")
    cases = [case for case in json.loads((tmp_path / "report" / "cases.json").read_text()) if "teacher" in case]
    assert cases
    for case in cases:
        for symbol in ("gold", "prediction"):
            assert case[f"teacher_{symbol}_probability"] == pytest.approx(case[f"{symbol}_probability"], rel=1e-3)
    assert "BertModel" in refused(analyze, released / "alone")


@pytest.mark.parametrize("kind", OTHERS)
def test_other_models_predict_what_they_do_without_the_data(kind, tmp_path, wordpiece_bin):
    core = make_other(kind, len(PIECES))
    save_models(tmp_path, {"model": core})
    loaded = load_folder(tmp_path / "model", wordpiece_bin)
    dictionary, tokenizer = read_data_bin(wordpiece_bin)
    token_ids = torch.from_numpy(tokenizer.token_ids(dictionary))
    words = torch.tensor([[0, 7, 9, 11, 8, 2], [0, 12, 9, 2, 1, 1]])
    masked = torch.tensor([[0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]]).bool()
    expected = core(input_ids=token_ids[words], attention_mask=words.ne(1).long()).logits[masked][:, token_ids]
    torch.testing.assert_close(loaded.model(words, masked_tokens=masked)[0], expected)
    first = core.config.pad_token_id + 1 if "Roberta" in kind else 0
    limit = UNLIMITED if "ModernBert" in kind else core.config.max_position_embeddings - first
    assert loaded.model.max_positions() == limit
    assert loaded.task.cfg.tokens_per_sample == min(128, limit)


def test_only_symbols_without_a_row_in_the_model_are_never_predicted(tmp_path, wordpiece_bin):
    data_bin = shutil.copytree(wordpiece_bin, tmp_path / "data-bin")
    with open(data_bin / "dict.txt", "a") as file:
        file.write("twin 1\n")
    dictionary = read_data_bin(data_bin)[0]
    added = dictionary.index("twin")
    for rows, known in ((len(PIECES), False), (len(PIECES) + 1, True)):
        save_models(tmp_path, {str(rows): make_other(next(iter(OTHERS)), rows)})
        model = load_folder(tmp_path / str(rows), data_bin).model
        logits, _ = model(torch.tensor([[0, 7, added, 2]]), masked_tokens=torch.tensor([[0, 1, 0, 0]]).bool())
        assert logits[0, added].isfinite() == known and logits[0].isfinite().sum() >= len(dictionary) - 1
        assert (model.input_ids[added] == len(PIECES)) == known


def test_folders_are_sorted_by_their_updates(released, wordpiece_bin, tmp_path):
    for name, updates in (("checkpoint-1000", 1000), ("checkpoint-200", 200)):
        shutil.copytree(released / "bert", tmp_path / name)
        (tmp_path / name / "trainer_state.json").write_text(json.dumps({"global_step": updates}))
    shutil.copytree(released / "bert", tmp_path / "checkpoint-start")
    found = find_folders([str(tmp_path / "checkpoint-*")], read_data_bin(wordpiece_bin)[0], wordpiece_bin)
    names = [(checkpoint.path.name, checkpoint.updates) for checkpoint in found]
    assert names == [("checkpoint-start", None), ("checkpoint-200", 200), ("checkpoint-1000", 1000)]


def test_folders_that_do_not_fit_are_refused(released, wordpiece_bin, tmp_path):
    def refusal(path) -> str:
        return refused(find_folders, [str(path)], read_data_bin(wordpiece_bin)[0], wordpiece_bin)

    for path, named in (
        (tmp_path / "none", "none"),
        (released / "discriminator", "ElectraForPreTraining"),
        (tmp_path, "config.json"),
    ):
        assert named in refusal(path)
    copy = shutil.copytree(released / "bert", tmp_path / "bert")
    (copy / "trainer_state.json").write_text('{"epoch": 1}')
    assert "trainer_state.json" in refusal(copy)
    write_vocabulary(copy, [*PIECES[:-2], "##ed", "##s"])
    assert "'##s'" in refusal(copy)
    assert "cls.predictions." in refused(load_folder, released / "alone", wordpiece_bin)
