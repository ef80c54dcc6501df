"""The language of planning requests: trees, words, text, and what a tree demands."""
