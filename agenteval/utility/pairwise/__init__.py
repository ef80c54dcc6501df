"""Pairwise judging: which of two systems does better on a case, asked in both orders."""
