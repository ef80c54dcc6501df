"""The verifier verified: judges with known balanced accuracy, and the verdicts on them."""
