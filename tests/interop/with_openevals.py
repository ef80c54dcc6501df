"""Its own evaluators: they compare an answer with the reference as texts, and know no numbers."""

from openevals.exact import exact_match as solves
from openevals.string.levenshtein import levenshtein_distance as counts

__all__ = ["counts", "solves"]
