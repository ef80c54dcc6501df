"""Commands that do not belong to one of the four systems."""
