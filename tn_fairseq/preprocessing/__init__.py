"""Convert text into the files that fairseq reads."""
