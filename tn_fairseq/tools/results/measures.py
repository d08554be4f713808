"""What can be measured: one entry for each measure. A new evaluation adds its entries here."""

from collections.abc import Mapping
from typing import NamedTuple

HELD_OUT, OTHER_TEXT, TRAINING, FALSE_NEGATIVES, TEACHER, DETECTION, RECOVERED, TABLES, WORDS, FINE_TUNING, COST = (
    "masked language modeling on held-out text",
    "masked language modeling on other text",
    "masked language modeling during training",
    "false negatives on held-out text",
    "what the teacher says about wrong predictions",
    "replaced token detection on held-out text",
    "share of the oracle's gain",
    "synonym tables",
    "words, without fine-tuning",
    "fine-tuning",
    "cost",
)
# in the order of a report; Holm's correction is for all comparisons of a group
GROUPS = {
    RECOVERED: "The oracle shows what can be gained at most: it trains on text without synonyms. 0% is the baseline, "
    "and 100% is the oracle with the same seed. Synonyms of the masked word count as right.",
    HELD_OUT: "Text that no run was trained on, masked several times; the same masks for all runs. The loss is that of "
    "plain masked LM.",
    OTHER_TEXT: "The same for text of another source than the training text, or for a part of the training text if the "
    "name says so.",
    TRAINING: "From the training logs. Each batch is measured before the model learns from it. Runs with the same seed "
    "see the same text with the same masks in the same order. So the text is new to the run, though not always to the "
    "weights that it started from. If the runs have dropout, it is on.",
    FALSE_NEGATIVES: "With the same synonym table for all arms, after the last update.",
    TEACHER: "Another model reads the same masked text.",
    DETECTION: "ELECTRA's discriminator reads the words that its generator draws, with the same masks for all runs. "
    "Synonyms of the original word count neither as replaced nor as found.",
    TABLES: "What the tables contain, and what people or a model say about their synonyms.",
    WORDS: "What the models know about words, measured without fine-tuning. These intervals resample the words or "
    "sentences and the seeds; with few seeds they are too narrow.",
    FINE_TUNING: "Scores of the development data.",
    COST: "Short training runs of all arms in turns, one at a time.",
}


class Measure(NamedTuple):
    """A measure: its name in the table, its group, its title in reports, its unit, and whether more is better.

    ``title`` has the places {data} and {part}. ``better`` is 1 for more, -1 for less, and 0 for neither. The figure of
    a seed is the mean of its items; with ``correlation``, it is Spearman's correlation with the items of PEOPLE. A
    ``detail`` is a part of another measure: it is neither drawn nor corrected for.
    """

    name: str
    group: str
    title: str
    unit: str = "%"
    better: int = 0
    note: str = ""
    detail: bool = False
    correlation: bool = False

    def titled(self, data: str = "", part: str = "", unit: bool = True) -> str:
        """The title about some data, with the unit unless it is a word of the title."""
        title = self.title.format(data=data, part=part).strip(" :,")
        return title if not unit or self.unit in title else f"{title} ({self.unit})"


PEOPLE = "people"  # the arm that has people's judgments of the items

_ALL = [
    Measure("recovered_accuracy", RECOVERED, "of the accuracy if synonyms are right, {part}", better=1),
    Measure("recovered_loss", RECOVERED, "of the loss if synonyms are right, {part}", better=1),
    Measure("accuracy", HELD_OUT, "accuracy", better=1, note="masked tokens whose prediction is the masked word"),
    Measure("loss", HELD_OUT, "loss", "bits", -1),
    Measure("merged_accuracy", HELD_OUT, "accuracy if synonyms are right, {part}", better=1),
    Measure("merged_loss", HELD_OUT, "loss if synonyms are right, {part}", "bits", -1),
    Measure("other_accuracy", OTHER_TEXT, "accuracy on {data}", better=1),
    Measure("other_loss", OTHER_TEXT, "loss on {data}", "bits", -1),
    Measure("training_accuracy", TRAINING, "accuracy of the {part}", better=1),
    Measure("training_mean_accuracy", TRAINING, "mean accuracy of all updates", better=1),
    Measure("training_loss", TRAINING, "loss of the {part}", "bits", -1),
    Measure("updates_to_reach", TRAINING, "updates to reach an accuracy of {part}", "updates", -1),
    Measure("prediction_rate", FALSE_NEGATIVES, "wrong predictions that are synonyms, {part}"),
    Measure("sequence_rate", FALSE_NEGATIVES, "sequences with such a prediction, {part}"),
    Measure("masked_rate", FALSE_NEGATIVES, "masked tokens with such a prediction, {part}", detail=True),
    Measure("mistaken_rate", FALSE_NEGATIVES, "masked words with synonyms that are mistaken for one, {part}"),
    Measure("synonym_probability", FALSE_NEGATIVES, "probability of the masked word's synonyms, {part}"),
    Measure("pair_cosine", FALSE_NEGATIVES, "mean cosine of a word and its synonym, {part}", ""),
    Measure("other_cosine", FALSE_NEGATIVES, "mean cosine of all words with a synonym, {part}", ""),
    Measure(
        "teacher_as_likely_rate", TEACHER, "wrong predictions at least as likely to the teacher as the masked word"
    ),
    Measure("teacher_likely_rate", TEACHER, "wrong predictions at least 10% likely to the teacher"),
    Measure("teacher_probability", TEACHER, "the teacher's mean probability of a wrong prediction"),
    Measure("teacher_gold_probability", TEACHER, "the teacher's mean probability of the masked word there"),
    Measure("detection_recall", DETECTION, "replaced tokens found, {part}", better=1),
    Measure("detection_precision", DETECTION, "replaced ones of those called replaced, {part}", better=1),
    Measure("detection_auc", DETECTION, "area under the ROC curve, {part}", better=1),
    Measure("synonyms_detected", DETECTION, "synonyms called replaced, {part}"),
    Measure("table words", TABLES, "words", "words", note="of the dictionary that have a synonym"),
    Measure("table pairs", TABLES, "pairs", "pairs", note="of a word and one of its synonyms"),
    Measure("table fired", TABLES, "fired %", note="wrong predictions that are synonyms of the masked word"),
    Measure(
        "table judged",
        TABLES,
        "judged pairs",
        "pairs",
        note="of a word and a synonym that people judged in its sentence, as a form of a judged lemma",
    ),
    Measure("table acceptable", TABLES, "accepted %", note="by at least half of the judges"),
    Measure("table doubtful", TABLES, "doubtful %", note="accepted by fewer"),
    Measure("table rejected", TABLES, "rejected %", note="accepted by fewer than one in ten"),
    Measure("table held", TABLES, "held %", note="acceptable substitutes of one piece that the table holds"),
    Measure("table rows", TABLES, "rows", "rows", note="words with a synonym, both whole words"),
    Measure("table crossing", TABLES, "cross %", note="rows with a synonym in another inflection"),
    Measure("table own word", TABLES, "own %", note="pairs of two forms of one word"),
    Measure("table other word", TABLES, "other %", note="pairs of two words in different forms"),
    Measure(
        "leniency",
        WORDS,
        "{data}: acceptable substitutes (leniency)",
        "",
        note="mean over targets of log(summed probability of the acceptable substitutes / probability of the target)",
    ),
    Measure("rejected", WORDS, "{data}: rejected substitutes", "", -1, note="the same for the rejected substitutes"),
    Measure(
        "lemmas",
        WORDS,
        "{data}: lemmas",
        "",
        note="leniency if substitutes are not inflected as the target is",
        detail=True,
    ),
    Measure(
        "GAP",
        WORDS,
        "{data}: ranking of substitutes (GAP)",
        better=1,
        note="generalized average precision of the ranking of all judged substitutes",
    ),
    Measure(
        "RTD AUC",
        WORDS,
        "{data}: discriminator on substitutes (RTD AUC)",
        better=1,
        note="how well ELECTRA's discriminator tells acceptable from rejected substitutes; 50 is chance",
    ),
    Measure(
        "row",
        WORDS,
        "{data}: row, {part}",
        note="probability of the target's row in a synonym table, and of its synonyms that people accept or reject",
        detail=True,
    ),
    Measure("row acceptable", WORDS, "{data}: row acceptable, {part}", detail=True),
    Measure("row rejected", WORDS, "{data}: row rejected, {part}", detail=True),
    Measure(
        "Spearman",
        WORDS,
        "{data}: similarity of words (Spearman)",
        "",
        1,
        note="correlation of people's similarity of two words with the cosine of their input embeddings",
        correlation=True,
    ),
    Measure(
        "mean cosine",
        WORDS,
        "mean cosine of all pairs of words",
        "",
        note="of the input embeddings of whole words; near 1 if they have collapsed",
    ),
    Measure(
        "minimal pairs",
        WORDS,
        "{data}: grammatical sentences preferred",
        better=1,
        note="pairs whose good sentence has the higher pseudo-log-likelihood; 50 is chance",
    ),
    Measure("minimal pairs by phenomenon", WORDS, "{data}: grammatical sentences preferred, {part}", detail=True),
    Measure("minimal pairs by paradigm", WORDS, "{data}: grammatical sentences preferred, {part}", detail=True),
    Measure("CoLA", FINE_TUNING, "CoLA", better=1, note="Matthews correlation"),
    Measure("SST-2", FINE_TUNING, "SST-2", better=1, note="accuracy"),
    Measure("MRPC", FINE_TUNING, "MRPC", better=1, note="accuracy"),
    Measure("STS-B", FINE_TUNING, "STS-B", better=1, note="Spearman correlation"),
    Measure("QQP", FINE_TUNING, "QQP", better=1, note="accuracy"),
    Measure("MNLI", FINE_TUNING, "MNLI", better=1, note="accuracy, matched"),
    Measure("QNLI", FINE_TUNING, "QNLI", better=1, note="accuracy"),
    Measure("RTE", FINE_TUNING, "RTE", better=1, note="accuracy"),
    Measure("average", FINE_TUNING, "average {part}", better=1, note="of GLUE's tasks, for each seed that all have"),
    Measure("EM", FINE_TUNING, "SQuAD EM", better=1, note="exact match"),
    Measure("F1", FINE_TUNING, "SQuAD F1", better=1, note="words of prediction and answer in common"),
    *(
        Measure(f"{kind}{score}{end}", FINE_TUNING, title.format(score=score), better=better, note=note)
        for score in ("EM", "F1")
        for kind, end, title, better, note in (
            ("original ", "", "{{part}}: SQuAD {score} before the attack", 1, "on the questions that were attacked"),
            ("attacked ", "", "{{part}}: SQuAD {score} under attack", 1, ""),
            ("", " drop", "{{part}}: SQuAD {score} drop", -1, "original minus attacked, on the same questions"),
        )
    ),
    Measure("update_time", COST, "time of an update, that of the baseline = 100", better=-1),
    Measure("training_time", COST, "seconds of training", "seconds", -1),
    # not compared
    Measure("sequences", "", "sequences", "sequences"),
    Measure("masked", "", "masked tokens", "tokens"),
    Measure("mismatches", "", "wrong predictions", "predictions"),
    Measure("corrected", "", "wrong predictions that are synonyms, {part}", "predictions"),
    Measure("curve_accuracy", "", "accuracy in training"),
    Measure("curve_loss", "", "loss in training", "bits"),
    Measure("tokens_per_second", "", "tokens per second", ""),
    Measure("hours", "", "hours", ""),
]
MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _ALL}
DETAILS = [measure.name for measure in _ALL if measure.detail]


def names_of(*groups: str) -> list[str]:
    """The names of the measures in some groups, by default of all that are compared."""
    return [measure.name for measure in _ALL if measure.group in (groups or GROUPS)]


def measure_of(name: str) -> Measure:
    """The entry of a measure; one that has none is shown by its name and belongs to no group."""
    return MEASURES.get(name) or Measure(name, "", f"{name} {{part}}", "")
