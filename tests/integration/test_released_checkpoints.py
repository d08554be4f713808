"""What earlier versions wrote must always be read: checkpoints, for predictions and for further training, and data.

The checkpoints were written by ``fairseq-train`` in the tests' small world, with FLAGS and SIZES below and three
updates. The numbers next to them are the models' outputs at that time. The folder of a version holds data of
``binarize``, a table of ``synonyms build --source wordnet``, and the ELECTRA that three updates of hard correction
on them gave. A new version adds files and never replaces any.
"""

import json
from pathlib import Path

import pytest
import torch
from helpers import train_here

from tn_fairseq import from_pretrained
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.core.errors import InputError
from tn_fairseq.core.synonym_table import load_synonym_table
from tn_fairseq.models.loading import find_checkpoints, load

FOLDER = Path(__file__).parent.parent / "released"
SIZES = {
    "bert": "--encoder-layers 1 --encoder-embed-dim 8 --encoder-attention-heads 2 --encoder-ffn-embed-dim 16 "
    "--max-positions 32"
}
SIZES["electra"] = (
    f"{SIZES['bert']} --embedding-size 8 --generator-layers 1 --generator-embed-dim 8 --generator-attention-heads 1 "
    "--generator-ffn-embed-dim 16"
)
FLAGS = "--task electra --criterion electra --arch"
NAMES = sorted(path.stem for path in FOLDER.glob("*.pt"))


@pytest.mark.parametrize("name", NAMES)
def test_a_released_checkpoint_gives_the_same_outputs_and_training_resumes(name, dictionary, data_bin, tmp_path):
    (checkpoint,) = find_checkpoints([str(FOLDER / f"{name}.pt")], dictionary)
    model = load(checkpoint, data_bin).model.cpu()
    tokens = torch.arange(4, 20).view(2, 8)
    with torch.no_grad():
        logits, _ = model(tokens, masked_tokens=torch.eye(2, 8, dtype=torch.bool))
        hidden, _ = model(tokens, features_only=True)
    said = {"logits": logits[:, :6].tolist(), "hidden": hidden[0, 0].tolist()}
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    for key, values in expected.items():
        assert torch.allclose(torch.tensor(said[key]), torch.tensor(values), atol=1e-4), key

    family = name.split("-")[0]
    flags = [*FLAGS.split(), f"{family}_tiny", *SIZES[family].split(), "--max-update", 4]
    records = train_here(data_bin, tmp_path, *flags, "--restore-file", FOLDER / f"{name}.pt")["train_inner"]
    assert [record["num_updates"] for record in records] == ["4"]


VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_version_wrote_trains_and_works_in_python(version, dictionary, tmp_path):
    folder = FOLDER / version
    path = folder / "synonyms.safetensors"
    flags = ["--task", "electra", "--arch", "electra_tiny", *SIZES["electra"].split(), "--batch-size", 4]
    flags += ["--criterion", "mlm_hard_correction", "--synonym-table", path]
    flags += ["--restore-file", folder / "checkpoint.pt", "--max-update", 5]
    records = train_here(folder / "data-bin", tmp_path, *flags)["train_inner"]
    assert [record["num_updates"] for record in records] == ["4", "5"]

    model = from_pretrained(folder, "checkpoint.pt", folder / "data-bin")
    filled = model.fill_mask("He bought a <mask> house.", topk=190)
    assert sum(one.probability for one in filled) == pytest.approx(1)

    theirs = load_dictionary(folder / "data-bin" / "dict.txt")
    table, continuations, _ = load_synonym_table(path, theirs)
    assert theirs.index("big") in table[theirs.index("large")] and theirs.index("start") in table[theirs.index("begin")]
    assert continuations.tolist() == [symbol.startswith("##") for symbol in theirs.symbols]
    with pytest.raises(InputError, match="the table of another dictionary"):
        load_synonym_table(path, dictionary)
