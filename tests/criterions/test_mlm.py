from fairseq.criterions import CRITERION_REGISTRY
from helpers import fairseq_train


def test_mlm_is_another_name_for_electra():
    assert CRITERION_REGISTRY["mlm"] is CRITERION_REGISTRY["electra"]


def test_a_run_resumes_under_the_other_name(data_bin, tmp_path):
    flags = ["--task", "electra", "--arch", "bert_tiny"]
    assert fairseq_train(data_bin, tmp_path, *flags, "--criterion", "electra", "--max-update", 1).code == 0
    run = fairseq_train(data_bin, tmp_path, *flags, "--criterion", "mlm", "--max-update", 2)
    assert run.code == 0 and [record["num_updates"] for record in run.records("train_inner")] == ["2"], run.output
