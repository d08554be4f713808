"""Convert raw text into the files that fairseq-train reads."""
