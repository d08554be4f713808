"""Types of command-line arguments."""

import argparse

import pytest

from tn_fairseq.commands.arguments import command_parser, positive, share


def test_numbers():
    assert [positive(text) for text in ("1", "12", "007")] == [1, 12, 7]
    assert [share(text) for text in ("1", "0.5", "1e-3")] == [1, 0.5, 0.001]


@pytest.mark.parametrize(
    ("read", "text"),
    [*((positive, text) for text in ("0", "-1", "1.5", "x", "", "1_0"))]
    + [(share, text) for text in ("0", "-0.1", "1.01", "nan", "inf", "x", "")],
)
def test_other_numbers_are_refused(read, text):
    expected = "a positive integer" if read is positive else "above 0 and at most 1"
    with pytest.raises(argparse.ArgumentTypeError, match=f"^must be {expected}, not {text}$"):
        read(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--task RTE", "the following arguments are required: --data-dir"),
        ("--data_dir x", "unrecognized arguments: --data_dir; did you mean --data-dir?"),
        ("--data-dir x --taks=RTE", "unrecognized arguments: --taks=RTE; did you mean --task?"),
        ("--data-dir x --nothing", "unrecognized arguments: --nothing; tn-fairseq data glue --help lists the options"),
        ("--data-dir x --task rte", "--task rte: unknown; did you mean RTE?"),
        ("--data-dir x --task MRCP", "--task MRCP: unknown; did you mean MRPC?"),
        ("--data-dir x --task all", "--task all: unknown; give one of RTE, MRPC"),
        ("--da", "argument --data-dir: expected one argument"),
    ],
)
def test_errors_are_one_line_and_name_the_wrong_option_first(words, message, capsys):
    parser = command_parser("data glue", None)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--task", choices=["RTE", "MRPC"])
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(words.split())
    assert capsys.readouterr().err == f"error: {message}\n"
