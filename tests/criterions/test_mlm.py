from fairseq.criterions import CRITERION_REGISTRY
from helpers import fairseq_train


def test_mlm_is_electra_under_another_name():
    mlm, electra = CRITERION_REGISTRY["mlm"], CRITERION_REGISTRY["electra"]
    assert mlm.__bases__ == (electra,) and mlm.forward is electra.forward


def test_a_run_resumes_under_the_other_name(data_bin, tmp_path):
    flags = ["--task", "electra", "--arch", "bert_tiny"]
    assert fairseq_train(data_bin, tmp_path, *flags, "--criterion", "electra", "--max-update", 1).code == 0
    run = fairseq_train(data_bin, tmp_path, *flags, "--criterion", "mlm", "--max-update", 2)
    assert run.code == 0 and [record["num_updates"] for record in run.records("train_inner")] == ["2"], run.output
