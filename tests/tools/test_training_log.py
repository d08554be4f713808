"""Records of a training log, also of one that was interrupted and resumed."""

from files import refused

from tn_fairseq.tools.training_log import MOST_POINTS, loss_points, read_records


def test_later_records_replace_earlier_ones(tmp_path):
    log = tmp_path / "train.log"
    lines = [f'x | INFO | train_inner | {{"num_updates": "{n}", "loss": "{loss}"}}' for n, loss in ((10, 5), (20, 4))]
    killed, resumed = 'x | INFO | train_inner | {"num_updates": "30", "lo', lines[1].replace('"4"', '"3"')
    other = 'x | INFO | valid | {"valid_num_updates": "20", "loss": "9"}'
    lines = [*lines, other, killed, resumed, lines[0].replace("10", "40")]
    log.write_bytes("\n".join(lines).encode() + b"\nkilled within a letter: \xc3\n")
    found = read_records(log, "train_inner")
    assert [(record["num_updates"], record["loss"]) for record in found] == [("10", "5"), ("20", "3"), ("40", "5")]
    assert [record["loss"] for record in read_records(log, "valid")] == ["9"]


def test_the_points_of_a_curve_are_means_if_there_are_many(tmp_path):
    log = tmp_path / "train.log"
    record = 'x | INFO | train_inner | {{"num_updates": "{0}", "loss": "99", "nll_loss": "{0}"}}\n'
    log.write_text("".join(map(record.format, range(1, 2 * MOST_POINTS + 1))))
    points = loss_points(log)
    assert len(points) == MOST_POINTS and points[:2] == [(2, 1.5), (4, 3.5)]
    log.write_text('x | INFO | train_inner | {"num_updates": "7", "loss": "99"}\n')  # fairseq's masked_lm
    assert loss_points(log) == [(7, 99)]
    log.write_text("started\n")
    assert f"{log}: no losses" in refused(loss_points, log)
    assert str(tmp_path / "no.log") in refused(read_records, tmp_path / "no.log", "train")
