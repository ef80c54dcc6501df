"""Other frameworks, a module for each, named after it and imported only when an object of it is
given: `adapt(judge)` makes a `Scorer` (`evaluators/utility/scorers.py`) of a metric of theirs.
pytest itself loads `pytest_plugin`."""
