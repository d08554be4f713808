import json
import lzma
import re

import pytest
from files import refused
from guides import guide
from helpers import load_script
from tokenizer_folders import REAL_DATA, with_real_data

main = load_script("examples/study/wikipedia.py").main


def squad(titles, path) -> None:
    articles = [{"title": title, "paragraphs": [{"context": f" {title}\nis. "}, {"context": "A."}]} for title in titles]
    path.write_text(json.dumps({"data": articles}))


def test_every_44th_article_by_title_is_held_out(tmp_path, capsys, monkeypatch):
    titles = [f"T{number:02}" for number in range(90)]
    squad(reversed(titles), tmp_path / "train-v1.1.json")
    (command,) = re.findall(r"^python examples/study/wikipedia.py (.*)$", guide("study"), flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    main(command.split())
    held_out = {"T43", "T87"}
    for split, chosen in (("valid", sorted(held_out)), ("train", [title for title in titles if title not in held_out])):
        text = (tmp_path / "data" / "corpus" / f"wiki.{split}.txt").read_text()
        assert text == "".join(f"{title} is.\nA.\n\n" for title in chosen)
    assert "wiki.valid.txt: 2 articles, 6 words" in capsys.readouterr().out


@pytest.mark.parametrize("content", ['{"data": [{"title": "x"}]}', '{"data": []}', "{"])
def test_other_files_get_one_line(content, tmp_path):
    (tmp_path / "train.json").write_text(content)
    message = refused(main, [str(tmp_path / "train.json"), "--output-dir", str(tmp_path / "corpus")])
    assert "train.json" in message and not (tmp_path / "corpus").exists()


@with_real_data
def test_the_real_text(tmp_path):
    (tmp_path / "train.json").write_bytes(lzma.decompress((REAL_DATA / "squad" / "train-v1.1.json.xz").read_bytes()))
    main([str(tmp_path / "train.json"), "--output-dir", str(tmp_path)])
    for name in ("wiki.train.txt", "wiki.valid.txt"):
        assert (tmp_path / name).read_bytes() == (REAL_DATA / "corpus" / name).read_bytes()
