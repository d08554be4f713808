import os
from pathlib import Path

import pytest
import torch
import transformers
from files import refused
from helpers import write_table
from huggingface_models import make_bert, write_vocabulary
from tokenizer_folders import sentencepiece_folder, with_real_data

from tn_fairseq.commands.synonyms_build import main
from tn_fairseq.commands.synonyms_show import main as show
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.core.synonym_table import load_synonym_table
from tn_fairseq.huggingface import SynonymTable
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.huggingface.synonyms import TokenizerSymbols
from tn_fairseq.tokenizers import load_tokenizer

WORDS = ["primary", "main", "stay", "the", "chief", "remain", "large"]
PARTS = ["ed", "er"]
BERT_PIECES = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "[MASK]", "inch", *(f"##{p}" for p in PARTS)]
ROBERTA_PIECES = ["<s>", "<pad>", "</s>", "<unk>"]
PRIMARY = {"primary": ["chief", "main"], "main": ["chief", "primary"], "chief": ["main", "primary"]}
EXPECTED = {**PRIMARY, "stay": ["remain"], "remain": ["stay"]}
GROUPS = "chief, main, primary\nremain, stay\n"


def numbered(pieces):
    return {piece: number for number, piece in enumerate(pieces)}


def scored(pieces):
    return [(piece, -float(number)) for number, piece in enumerate(pieces)]


def bert(folder):
    return transformers.BertTokenizer(vocab=numbered(BERT_PIECES))


def slow(folder):
    """A tokenizer in Python, without a mask token."""
    folder.joinpath("vocab.txt").write_text("".join(f"{piece}\n" for piece in BERT_PIECES if piece != "[MASK]"))
    tokenizer = transformers.BertJapaneseTokenizer(str(folder / "vocab.txt"), mask_token=None)
    assert not tokenizer.is_fast and tokenizer.mask_token is None
    return tokenizer


def roberta(folder):
    pieces = [*ROBERTA_PIECES, *(f"Ġ{word}" for word in WORDS), *PARTS, "stay", "<mask>"]
    return transformers.RobertaTokenizer(vocab=numbered(pieces), merges=[])


def deberta(folder):
    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "▁", *(f"▁{word}" for word in WORDS), *PARTS, "stay", "[MASK]"]
    return transformers.DebertaV2Tokenizer(vocab=scored(pieces), unk_id=3)


KINDS = [bert, slow, roberta, deberta]


@pytest.fixture
def tokenizer(tmp_path):
    return bert(tmp_path)


def build(tokenizer, folder, groups=GROUPS):
    """The table of a list, without WordNet, which takes a second."""
    (folder / "groups.txt").write_text(groups)
    return SynonymTable.from_list(tokenizer, folder / "groups.txt", "groups")


def by_token(tokenizer, table):
    """The rows of the tensor as tokens -> tokens."""
    rows = {}
    for token, row in enumerate(table.synonyms.tolist()):
        kept = [synonym for synonym in row if synonym != -1]
        assert row == kept + [-1] * (len(row) - len(kept))
        if kept:
            rows[tokenizer.convert_ids_to_tokens(token)] = tokenizer.convert_ids_to_tokens(kept)
    return rows


@pytest.mark.parametrize("make", KINDS)
def test_rows_have_the_ids_of_the_tokenizer_and_a_saved_table_is_the_same(make, tmp_path):
    tokenizer = make(tmp_path)
    table = build(tokenizer, tmp_path)
    assert table.to_rows() == EXPECTED and len(table) == 5
    assert table.synonyms.shape == (len(tokenizer), 2) and table.synonyms.dtype == torch.int32
    marker = {"▁primary", "Ġprimary"} & set(tokenizer.get_vocab())
    marker = min(marker, default="p")[0].strip("p")
    marked = {marker + word: [marker + synonym for synonym in row] for word, row in EXPECTED.items()}
    assert by_token(tokenizer, table) == marked
    continuing = {token for token, id in tokenizer.get_vocab().items() if table.continues_word[id]}
    assert continuing == {f"##{part}" for part in PARTS} if not marker else continuing >= set(PARTS)
    assert table.continues_word.shape == (len(tokenizer),)
    assert continuing <= {*PARTS, "stay", "##ed", "##er"}
    path = tmp_path / "table.safetensors"
    table.save(path)
    loaded = SynonymTable.from_file(tokenizer, path)
    assert torch.equal(loaded.synonyms, table.synonyms) and torch.equal(loaded.continues_word, table.continues_word)
    assert loaded.description.items() >= table.description.items()
    content = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == content


def test_special_and_added_tokens(tokenizer, tmp_path):
    tokenizer.add_tokens(["principal"])
    tokenizer.add_tokens(["master"], special_tokens=True)
    tokenizer.add_special_tokens({"additional_special_tokens": ["basal"]})
    tokenizer.add_special_tokens({"pad_token": "chief"})  # a word of the vocabulary
    table = build(tokenizer, tmp_path, "primary, main, principal, master, basal, chief\n")
    assert len(table.synonyms) == len(tokenizer) == len(BERT_PIECES) + 3
    assert table.to_rows().keys() == {"primary", "main", "principal"}
    assert table.to_rows()["primary"] == ["main", "principal"]
    special = tokenizer.convert_tokens_to_ids(["master", "basal", "chief", "[PAD]", "[MASK]"])
    assert (table.synonyms[special] == -1).all() and not torch.isin(table.synonyms, torch.tensor(special)).any()
    table.save(tmp_path / "table.safetensors")
    assert SynonymTable.from_file(tokenizer, tmp_path / "table.safetensors").to_rows() == table.to_rows()


def test_ids_with_gaps_are_rows_without_synonyms(tmp_path):
    vocabulary = {piece: 3 * number for piece, number in numbered(BERT_PIECES).items()}
    tokenizer = transformers.BertTokenizer(vocab=vocabulary)
    table = build(tokenizer, tmp_path)
    assert len(table.synonyms) == 3 * len(BERT_PIECES) - 2
    assert by_token(tokenizer, table) == EXPECTED


def test_a_padded_table_has_more_rows(tokenizer, tmp_path):
    table = build(tokenizer, tmp_path)
    assert repr(table) == "<SynonymTable: 5 of 16 tokens have 8 synonyms, from list>"
    padded, size = table.padded(64), len(tokenizer)
    assert torch.equal(padded.synonyms[:size], table.synonyms) and (padded.synonyms[size:] == -1).all()
    assert torch.equal(padded.continues_word[:size], table.continues_word) and not padded.continues_word[size:].any()
    assert padded.synonyms.shape == (64, 2) and padded.continues_word.shape == (64,)
    assert f"{size - 1} embeddings" in refused(table.padded, size - 1)


def test_options_are_those_of_the_command(tokenizer, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("primary 1 0\nmain 1 0.1\nchief 1 0.5\nstay -1 0\nthe 1 0\nlarge 0 1\n")
    near = SynonymTable.from_vectors(tokenizer, vectors, top_k=1, min_similarity=0.5)
    assert near.to_rows() == {"primary": ["main"], "main": ["primary"], "chief": ["main"]}
    (tmp_path / "list.tsv").write_text("word\tsynonym\tscore\nprimary\tmain\t0.9\nprimary\tlarge\t0.2\n")
    both_ways = SynonymTable.from_list(tokenizer, tmp_path / "list.tsv", "tsv", symmetric=True)
    assert both_ways.to_rows() == {"primary": ["main", "large"], "main": ["primary"], "large": ["primary"]}
    options = {"synonyms": tmp_path / "list.tsv", "format": "tsv", "columns": {"score": "score"}}
    where = SynonymTable.build(tokenizer, ["list"], **options, where={"score": "0.2"})
    assert where.to_rows() == {"primary": ["large"]}
    filtered = SynonymTable.build(tokenizer, ["list"], **options, filter={"vectors": 0.98}, vectors=vectors)
    assert filtered.to_rows() == {"primary": ["main"]}


def rows_of(path, dictionary):
    """A table for fairseq as symbols -> symbols."""
    rows = load_synonym_table(path, dictionary).synonyms.tolist()
    return {
        dictionary[index]: [dictionary[synonym] for synonym in row if synonym != -1]
        for index, row in enumerate(rows)
        if row[0] != -1
    }


def test_the_command_writes_the_same_file_for_a_tokenizer_and_for_its_dictionary(
    tokenizer, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    tokenizer.save_pretrained("folder")
    load_tokenizer("folder").dictionary().save(str(tmp_path / "dict.txt"))
    main(["--tokenizer", "folder", "--source", "wordnet", "--same-inflection", "--output", "ours"])
    printed = capsys.readouterr().out
    main(["--dict", "dict.txt", "--source", "wordnet", "--same-inflection", "--output", "theirs"])
    assert capsys.readouterr().out.replace("theirs", "ours") == printed
    assert Path("ours").read_bytes() == Path("theirs").read_bytes()
    table = SynonymTable.from_file(tokenizer, "theirs")
    assert table.to_rows() == rows_of("theirs", load_dictionary("dict.txt")) != {}
    built = SynonymTable.from_wordnet(tokenizer, same_inflection=True)
    assert torch.equal(built.synonyms, table.synonyms) and torch.equal(built.continues_word, table.continues_word)
    assert built.description.items() <= table.description.items()
    show(["theirs", "primary", "--tokenizer", "folder"])
    assert capsys.readouterr().out.endswith(f"primary: {', '.join(table.to_rows()['primary'])}\n")


def test_the_embeddings_of_an_imported_model_are_those_of_the_original(released, wordpiece_bin, tmp_path):
    folder, checkpoint = released / "bert", tmp_path / "imported.pt"
    import_model(folder, wordpiece_bin, checkpoint)
    near = ["--source", "model", "--min-similarity", "0.2"]
    fairseq, ours = tmp_path / "fairseq.safetensors", tmp_path / "ours.safetensors"
    main(["--dict", str(wordpiece_bin / "dict.txt"), *near, "--path", str(checkpoint), "--output", str(fairseq)])
    main(["--tokenizer", str(folder), *near, "--path", str(folder), "--output", str(ours)])
    dictionary = load_dictionary(wordpiece_bin / "dict.txt")
    assert rows_of(ours, dictionary) == rows_of(fairseq, dictionary) != {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for model in (checkpoint, folder, transformers.AutoModel.from_pretrained(folder)):
        table = SynonymTable.from_model(tokenizer, model, min_similarity=0.2)
        assert torch.equal(table.synonyms, SynonymTable.from_file(tokenizer, ours).synonyms)
        if model != checkpoint:
            assert table.description["source_version"].startswith("bert, embeddings of dimension 32, sha256 ")


def test_a_sentencepiece_model_has_the_same_dictionary_in_fairseq(tmp_path):
    folder = sentencepiece_folder(tmp_path / "model", pad_id=3, vocab_size=45)
    dictionary = load_tokenizer(folder).dictionary()
    dictionary.add_symbol("<mask>")
    pieces = [(symbol, -float(number)) for number, symbol in enumerate(dictionary.symbols)]
    tokenizer = transformers.XLMRobertaTokenizer(vocab=pieces)
    assert TokenizerSymbols(tokenizer).symbols == dictionary.symbols


def test_pieces_that_fairseq_does_not_read_have_the_same_symbols_in_fairseq(tmp_path):
    folder = write_vocabulary(tmp_path / "bert", [*BERT_PIECES, "<s>", "\u2028", "stay", "", "<unk>"])
    symbols = TokenizerSymbols(transformers.AutoTokenizer.from_pretrained(folder))
    ours = load_tokenizer(folder).dictionary()
    assert symbols.symbols == [*ours.symbols, *["<mask>"] * ("<mask>" not in ours)]
    assert symbols.symbols[-5:] == ["<<s>>", "stay", "", "<<unk>>", "<mask>"]  # "\u2028" is the same line as ""


@with_real_data
def test_a_released_tokenizer_has_the_same_dictionary_in_fairseq(tmp_path):
    vocabulary = Path(os.environ["TN_FAIRSEQ_DATA"], "vocab", "bert-uncased.vocab.txt").read_text(encoding="utf-8")
    folder = write_vocabulary(tmp_path / "bert", vocabulary.split("\n")[:-1])
    symbols = TokenizerSymbols(transformers.AutoTokenizer.from_pretrained(folder))
    dictionary = load_tokenizer(folder).dictionary()
    assert symbols.symbols == [*dictionary.symbols, "<mask>"] and symbols.size == len(symbols) == 30522


def write_table_of_data(folder, symbols):
    """A dict.txt of other data, and a table for it."""
    folder.mkdir(exist_ok=True)
    (folder / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols))
    rows = {word: [other for other in row if other in symbols] for word, row in EXPECTED.items() if word in symbols}
    return write_table(folder / "table", load_dictionary(folder / "dict.txt"), rows), folder / "dict.txt"


def test_a_table_of_another_order_is_read_with_its_dictionary(tokenizer, tmp_path):
    symbols = ["##er", "stay", "remain", "main", "madeupword0000", "chief", "primary"]
    path, dict_txt = write_table_of_data(tmp_path / "data", symbols)
    table = SynonymTable.from_file(tokenizer, path, dictionary=dict_txt)
    assert by_token(tokenizer, table) == EXPECTED
    assert table.continues_word.nonzero().flatten().tolist() == [tokenizer.convert_tokens_to_ids("##er")]
    table.save(tmp_path / "ours")  # in the tokenizer's own order
    assert torch.equal(SynonymTable.from_file(tokenizer, tmp_path / "ours").synonyms, table.synonyms)
    tokenizer.add_special_tokens({"additional_special_tokens": ["##er"]})
    assert not SynonymTable.from_file(tokenizer, path, dictionary=dict_txt).continues_word.any()


def test_tables_that_do_not_fit_a_tokenizer_are_refused(tokenizer, tmp_path):
    build(deberta(tmp_path), tmp_path).save(tmp_path / "deberta")
    build(tokenizer, tmp_path).save(tmp_path / "ours")
    _, dict_txt = write_table_of_data(tmp_path / "data", [*WORDS, "madeupword0000"])
    other, other_txt = write_table_of_data(tmp_path / "other", ["main", "chief", "principal"])
    dictionary = load_dictionary(dict_txt)
    unused = write_table(tmp_path / "unused", dictionary, {"stay": ["madeupword0000"]})
    for file, options, named in (
        (tmp_path / "deberta", {}, "--tokenizer"),
        (tmp_path / "ours", {"dictionary": dict_txt}, str(tmp_path / "ours")),
        (other, {"dictionary": other_txt}, f"{other_txt}: 'principal'"),
        (unused, {"dictionary": dict_txt}, "'madeupword0000'"),
    ):
        assert named in refused(SynonymTable.from_file, tokenizer, file, **options)
    tokenizer.add_special_tokens({"additional_special_tokens": ["main"]})
    for rows in ({"primary": ["main"]}, {"main": ["primary"]}):
        special = write_table(tmp_path / "special", dictionary, rows)
        assert "special token" in refused(SynonymTable.from_file, tokenizer, special, dictionary=dict_txt)


def test_wrong_options_are_refused(tokenizer):
    for source, options, named in (
        (["thesaurus"], {}, "thesaurus"),
        (["vectors"], {"vectors": "v.txt", "top_k": 0}, "top_k"),
        (["vectors"], {"vectors": "missing.txt"}, "missing.txt"),
        (["model"], {"path": "/missing/model"}, "/missing/model"),
    ):
        assert named in refused(SynonymTable.build, tokenizer, source, **options)
    assert "tokenizer" in refused(SynonymTable.from_wordnet, "name")


def test_other_models_are_refused(tokenizer, tmp_path):
    small, broken = (make_bert(size).bert for size in (len(tokenizer) - 1, len(tokenizer)))
    with torch.no_grad():
        broken.get_input_embeddings().weight[5] = torch.nan
    (tmp_path / "config.json").write_text("{}")
    for model, named in ((small, f"{len(tokenizer) - 1} embeddings"), (broken, "BertModel"), (tmp_path, str(tmp_path))):
        assert named in refused(SynonymTable.from_model, tokenizer, model)


@pytest.mark.parametrize("name", ["/missing/tokenizer", "damaged"])
def test_a_tokenizer_that_cannot_be_loaded_gets_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("damaged").mkdir()
    Path("damaged", "tokenizer.json").write_text('{"model": {}}')
    Path("damaged", "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    message = refused(main, ["--tokenizer", name, "--source", "wordnet", "--output", "table"])
    assert message.startswith(f"error: --tokenizer {name}: no ") and "save_pretrained" in message
    assert not Path("table").exists()
