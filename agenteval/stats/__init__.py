"""Pure functions on numbers and arrays; random generators are passed in."""

from agenteval.stats.agreement import krippendorff_alpha
from agenteval.stats.alttest import AltTest, alt_test
from agenteval.stats.bootstrap import (
    Bootstrap,
    bootstrap_interval,
    bootstrap_mean,
    bootstrap_sums,
)
from agenteval.stats.cluster import average_link
from agenteval.stats.correction import Corrected, corrected_rate
from agenteval.stats.correlation import (
    CorrelationMatrix,
    FirstComponent,
    correlation_matrix,
    first_component,
    spearman,
)
from agenteval.stats.discrimination import (
    Discrimination,
    RankTest,
    discrimination,
    magnitude,
    mann_whitney,
)
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.kappa import Kappa, cohen_kappa, gwet_ac2
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import PairedTest, sign_flip_test, sign_test
from agenteval.stats.passk import PassK, pass_at_k, pass_hat_k, pass_rate
from agenteval.stats.ppi import PPIMean, ppi_mean
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.reliability import icc
from agenteval.stats.sample_size import (
    cases_for_difference,
    smallest_difference,
)
from agenteval.stats.sequential import confidence_sequence
from agenteval.stats.unique import UniqueCurve, expected_unique, unique_curve
from agenteval.stats.variance import VarianceComponents, variance_components

__all__ = [
    "AltTest",
    "Bootstrap",
    "Corrected",
    "CorrelationMatrix",
    "Discrimination",
    "FirstComponent",
    "Interval",
    "Kappa",
    "PPIMean",
    "PairedTest",
    "PassK",
    "RankTest",
    "UniqueCurve",
    "VarianceComponents",
    "adjust",
    "alt_test",
    "average_link",
    "bootstrap_interval",
    "bootstrap_mean",
    "bootstrap_sums",
    "cases_for_difference",
    "cohen_kappa",
    "confidence_sequence",
    "corrected_rate",
    "correlation_matrix",
    "discrimination",
    "expected_unique",
    "first_component",
    "gwet_ac2",
    "icc",
    "krippendorff_alpha",
    "magnitude",
    "mann_whitney",
    "mean_interval",
    "pass_at_k",
    "pass_hat_k",
    "pass_rate",
    "ppi_mean",
    "proportion_interval",
    "sign_flip_test",
    "sign_test",
    "smallest_difference",
    "spearman",
    "unique_curve",
    "variance_components",
]
