"""Shared by the reports: the layout of tables, statistics, and the paper's numbers."""
