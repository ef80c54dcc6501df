"""Are the verdicts on judges right? Simulated judges whose verdict is known beforehand."""
