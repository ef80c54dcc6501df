"""The verifier: which criteria can be kept, and whether the judge can be trusted."""
