"""Records of a training log, also of one that was interrupted and resumed."""

import pytest

from tn_fairseq.errors import InputError
from tn_fairseq.reporting.training_log import read_records


def test_later_records_replace_earlier_ones(tmp_path):
    log = tmp_path / "train.log"
    lines = [f'x | INFO | train_inner | {{"num_updates": "{n}", "loss": "{loss}"}}' for n, loss in ((10, 5), (20, 4))]
    killed, resumed = 'x | INFO | train_inner | {"num_updates": "30", "lo', lines[1].replace('"4"', '"3"')
    other = 'x | INFO | valid | {"valid_num_updates": "20", "loss": "9"}'
    log.write_text("\n".join([*lines, other, killed, resumed, lines[0].replace("10", "40")]) + "\n")
    found = read_records(log, "train_inner")
    assert [(record["num_updates"], record["loss"]) for record in found] == [("10", "5"), ("20", "3"), ("40", "5")]
    assert [record["loss"] for record in read_records(log, "valid")] == ["9"]


def test_a_missing_log(tmp_path):
    with pytest.raises(InputError, match="no.log: No such file or directory; give a log of fairseq-train"):
        read_records(tmp_path / "no.log", "train")
