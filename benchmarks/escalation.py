"""Whether escalation keeps its promise, and what panels of agreeable judges are worth.

    python -m benchmarks.escalation [--draws 2000] [--seed 1]

Escalation: labels prove from which confidence a judge decides, and then a stronger judge on the
rest (`stats.selective`, agreement .9, confidence .95). In each draw the promise holds if the true
agreement of every judge that decides is at least .9. The worlds are hard ones: from some confidence
on, the true agreement is just below .9. "Together": both judges err on the same runs. Target: held
in .95 of the draws, in each world.

Panels: three judges that recognize good answers with .96 and bad ones with .25 (arXiv 2510.11822);
200 labelled cases, one half chooses the rule. Optimism: the true error of the chosen rule minus its
error on the other half. Target: no optimism beyond two standard errors; a veto beats the majority.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.records import CellKey, Criterion, Score
from agenteval.stats.selective import prove_threshold
from agenteval.utility.panel_rules import LabelledCell, PanelRule, choose_rule, mean_error
from benchmarks.outcome import Row, finish

Floats = NDArray[np.float64]
AGREEMENT, CONFIDENCE = 0.9, 0.95
KEY = CellKey(run="r", criterion="c", source="s", repeat=0)
CRITERION = Criterion(name="right", accepted_values=("no", "yes"), scale="binary")


@dataclass(frozen=True)
class World:
    """Two judges: the share of runs with each confidence, and the agreement there.

    `together` is the share of runs on which both draw the same luck, `systems` the runs of a case,
    half of which are right or wrong as a whole.
    """

    name: str
    shares: Mapping[float, float]
    cheap: Mapping[float, float]
    strong: Mapping[float, float]
    together: float = 0.0
    systems: int = 1
    cases: int = 200

    def draw(self, rng: np.random.Generator) -> list[tuple[Floats, NDArray[np.bool_]]]:
        """Return confidences and errors of each judge, (cases × systems) in order."""
        shape = (self.cases, self.systems)
        levels = np.array([*self.shares], dtype=np.float64)
        chances = [self.shares[level] for level in levels]
        luck = np.where(
            rng.random((self.cases, 1)) < 0.5, rng.random((self.cases, 1)), rng.random(shape)
        )
        other = np.where(rng.random(shape) < self.together, luck, rng.random(shape))
        judged = []
        for agreement, chance in ((self.cheap, luck), (self.strong, other)):
            confidence = np.asarray(rng.choice(levels, shape, p=chances), dtype=np.float64)
            right = np.vectorize(agreement.get)(confidence)
            judged.append((confidence.ravel(), (chance >= right).ravel()))
        return judged

    def agreement(self, judge: Mapping[float, float], threshold: float) -> float:
        """Return the true agreement of a judge from a threshold on."""
        at = [level for level in judge if level >= threshold]
        total = sum(self.shares[level] for level in at)
        return sum(self.shares[level] * judge[level] for level in at) / total


SHARES = {1.0: 0.5, 0.8: 0.3, 0.6: 0.2}
GOOD = {1.0: 0.97, 0.8: 0.94, 0.6: 0.9}
WORLDS = (
    World("only full confidence is good enough", SHARES, {1.0: 0.95, 0.8: 0.8, 0.6: 0.6}, GOOD),
    World("nothing is", SHARES, {1.0: 0.89, 0.8: 0.8, 0.6: 0.6}, {1.0: 0.895, 0.8: 0.8, 0.6: 0.7}),
    World(
        "the strong judge is just too weak",
        SHARES,
        {1.0: 0.97, 0.8: 0.7, 0.6: 0.6},
        {1.0: 0.895, 0.8: 0.89, 0.6: 0.8},
    ),
    World(
        "together", SHARES, {1.0: 0.95, 0.8: 0.81, 0.6: 0.7}, {1.0: 0.92, 0.8: 0.86, 0.6: 0.8}, 0.8
    ),
    World(
        "four systems",
        SHARES,
        {1.0: 0.95, 0.8: 0.8, 0.6: 0.6},
        {1.0: 0.895, 0.8: 0.89, 0.6: 0.8},
        0.5,
        4,
        100,
    ),
    World("both are good", SHARES, {1.0: 0.98, 0.8: 0.9, 0.6: 0.6}, GOOD, 0.5, 1, 400),
)


def promises(draws: int, rng: np.random.Generator) -> list[Row]:
    """Return how often the promise held, and the shares that each judge decides."""
    rows = []
    each = 1 - (1 - CONFIDENCE) / 2
    for world in WORLDS:
        cases = np.repeat(np.arange(world.cases), world.systems)
        held, decided = 0, np.zeros(2)
        for _ in range(draws):
            rest, kept, true = np.ones(len(cases), dtype=bool), 1.0, []
            judges = zip(world.draw(rng), (world.cheap, world.strong), strict=True)
            for number, ((confidence, errors), judge) in enumerate(judges):
                proof = prove_threshold(
                    confidence[rest],
                    errors[rest].tolist(),
                    cases[rest].tolist(),
                    agreement=AGREEMENT,
                    confidence=each,
                )
                if proof.threshold is None:
                    continue
                true.append(world.agreement(judge, proof.threshold))
                share = sum(s for level, s in SHARES.items() if level >= proof.threshold)
                decided[number] += kept * share
                kept *= 1 - share
                rest &= confidence < proof.threshold
            held += all(agreement >= AGREEMENT - 1e-9 for agreement in true)
        share = held / draws
        one, two = decided / draws
        rows.append(
            Row(
                f"escalation, {world.name} ({world.cases} labelled cases): the promise held",
                f"{share:.4f}; the judge decides {one:.0%}, the stronger one {two:.0%}, "
                f"people {1 - one - two:.0%}",
                ">= .95",
                share >= 0.95 - 2 * (0.05 * 0.95 / draws) ** 0.5,
            )
        )
    return rows


def cells(count: int, rng: np.random.Generator) -> list[LabelledCell]:
    """Return the answers of three agreeable judges."""
    good = rng.random(count) < 0.6
    yes = np.where(good[:, None], rng.random((count, 3)) < 0.96, rng.random((count, 3)) >= 0.25)
    scores = [
        Score(key=KEY, criterion_id="right", label=label, value=value)
        for label, value in (("no", 0.0), ("yes", 1.0))
    ]
    return [
        LabelledCell(
            CRITERION,
            f"c{i}",
            {f"judge {j}": scores[int(yes[i, j])] for j in range(3)},
            "yes" if good[i] else "no",
            float(good[i]),
        )
        for i in range(count)
    ]


def panels(draws: int, rng: np.random.Generator) -> list[Row]:
    """Return the errors of the rules, and how optimistic the held-out half is."""
    fresh = cells(20_000, rng)
    names = ("majority", "mean", "veto")
    errors = {name: mean_error(PanelRule.of(name, 3), fresh) for name in names}
    listed = ", ".join(f"{name} {error:.3f}" for name, error in errors.items())
    rows = [
        Row(
            "panel of three agreeable judges: error",
            listed,
            "veto < majority",
            errors["veto"] < errors["majority"],
        )
    ]
    for name in ("regression", "auto"):
        gaps, true = [], []
        for seed in range(draws):
            chosen = choose_rule(PanelRule(name), [CRITERION], cells(200, rng), seed)
            true.append(mean_error(chosen.rule, fresh[:5000]))
            gaps.append(true[-1] - mean_error(chosen.rule, chosen.held_out))
        gap, slack = float(np.mean(gaps)), 2 * float(np.std(gaps)) / draws**0.5
        rows.append(
            Row(
                f"panel, {name}: optimism of the held-out half ({draws} draws)",
                f"{gap:+.4f} ± {slack:.4f} at a mean error of {np.mean(true):.3f}",
                "none beyond the interval",
                gap <= slack,
            )
        )
    return rows


def main() -> int:
    """Run the simulations and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows = [*promises(options.draws, rng), *panels(max(options.draws // 10, 10), rng)]
    return finish("escalation", rows)


if __name__ == "__main__":
    sys.exit(main())
