"""What follows from ratings: agreement with people, comparisons, panels, label audits, gates."""
