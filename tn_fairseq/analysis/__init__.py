"""How often predictions are false negatives: rates over training (Table 2 of the paper), and by source of synonyms."""
