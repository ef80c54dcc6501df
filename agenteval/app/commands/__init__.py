"""Commands that are not about one of the four systems."""
