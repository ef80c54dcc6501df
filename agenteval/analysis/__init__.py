"""Analyses of ratings: agreement with people, comparisons, panels, label audits, gates."""
