"""What synonym tables and checkpoints know about words, measured on SWORDS, word similarities and BLiMP."""
