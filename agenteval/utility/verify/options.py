"""Thresholds of the verifier, with their sources."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from agenteval.errors import InputError


@dataclass(frozen=True)
class VerifyOptions:
    """Thresholds that a criterion and a judge must reach.

    - `min_cases`: below 20 clusters a cluster interval covers too little (measured:
      `benchmarks/coverage.py`), so nothing is decided.
    - `min_coverage`: a judge that leaves out more may leave out the hard cases.
    - `agreement`: Gwet's AC2 with linear weights at which repeats agree; .667 is Krippendorff's
      limit for tentative conclusions (Content Analysis, 2004, section 11.4.2).
      `agreement_floor`: the least lower limit of its interval; below .5 reliability is poor (Koo &
      Li, Journal of Chiropractic Medicine 15, 2016). `mean_agreement`: the least mean of AC2 over
      the criteria; with .7 noise of SD .10 of the scale passes and of SD .25 does not
      (`benchmarks/verdicts`). Alpha is not used: it is low for good judges whose ratings are mostly
      at one end.
    - `auc`: below it Cliff's delta counts as negligible (.147 is AUC .574; Romano et al. 2006).
    - `people`: the least rank correlation with labels of people.
    - `margin`: the largest mean change, as a share of the scale, that a control may make: half a
      step of a scale of five levels would be .125.
    - `redundant`: Spearman's rho of the runs' means at which two criteria are duplicates.
      `one_score`: share of the variance in one component above which three or more criteria cannot
      be told apart.
    - `min_copies`: copies that could fall, of each system, needed to compare systems.
    - `ceiling`: share of ratings at one end of the scale above which differences are hidden.
    - `resamples` of the bootstrap, `draws` of random sign flips.
    - `alpha`: error rate of each family of tests after Holm's correction, and of each interval.
    - `deterministic`: declares that the judge always rates a text the same, as a function does.
      Equal repeats alone do not show it: they may be copies.

    Raises InputError for a threshold that no data could meet or miss.
    """

    min_cases: int = 20
    min_coverage: float = 0.8
    agreement: float = 0.667
    agreement_floor: float = 0.5
    mean_agreement: float = 0.7
    auc: float = 0.574
    people: float = 0.3
    margin: float = 0.05
    redundant: float = 0.9
    one_score: float = 0.9
    min_copies: int = 12
    ceiling: float = 0.8
    alpha: float = 0.05
    resamples: int = 1000
    draws: int = 10_000
    seed: int = 0
    deterministic: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "float" and not 0 < value < 1:
                raise InputError(f"{field.name} is {value}; it must lie between 0 and 1")
        if self.min_cases < 2 or self.resamples < 100 or self.draws < 100:
            raise InputError("min_cases must be at least 2, resamples and draws at least 100")

    def at_look(self, look: int, looks: int) -> VerifyOptions:
        """Return the options of one of several looks at growing data (Bonferroni).

        Looks before the last share a fifth of `alpha`; the last look has the rest.
        """
        if looks == 1:
            return self
        alpha = 0.8 * self.alpha if look == looks - 1 else 0.2 * self.alpha / (looks - 1)
        return replace(
            self,
            alpha=alpha,
            resamples=max(self.resamples, math.ceil(20 / alpha)),
            draws=max(self.draws, math.ceil(100 / alpha)),
        )
