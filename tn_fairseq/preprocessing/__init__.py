"""Convert text into the files that fairseq reads."""

PREPROCESSING = "python -m tn_fairseq.preprocessing"  # the command as error messages and --help show it
