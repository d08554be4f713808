"""Fine-tuning on SQuAD, up to the training."""

import json

import pytest

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools.evaluate.finetune_options import FineTuningOptions
from tn_fairseq.tools.evaluate.finetune_squad import squad_jobs


def test_questions_to_score_need_answers_before_the_training(tmp_path):
    question = {"id": "q", "question": "who", "answers": []}
    paragraphs = [{"context": "the city", "qas": [question]}]
    (tmp_path / "valid.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    with pytest.raises(InputError, match="valid.json: question q has no answers"):
        squad_jobs(FineTuningOptions(checkpoints=[], data=tmp_path, output=tmp_path / "scores"))
