"""Reads the files of the data sets, and says in one line what is wrong with them."""
