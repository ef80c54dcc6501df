"""Synthesis of planning tests: skeletons by algorithm 1, words, equivalents, whole suites."""
