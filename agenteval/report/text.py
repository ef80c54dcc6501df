"""Texts of a page in short: bounded, and names of perturbations for people."""

from __future__ import annotations

from collections.abc import Iterable


def cut(text: object, most: int) -> str:
    """At most `most` characters of the text; what was left out is counted in words."""
    whole = str(text)
    if len(whole) <= most:
        return whole
    return f"{whole[:most]} [… cut: {most:,} of {len(whole):,} characters]"


def variant_label(name: str, among: Iterable[str] = ()) -> str:
    """`drop sentences 25 %` for `drop_sentences:0.25:7`; the seed too where only it differs."""
    operator, _, rest = name.partition(":")
    share, _, seed = rest.partition(":")
    try:
        dose = "" if share in ("", "-") else f" {float(share) * 100:.3g} %"
    except ValueError:
        return name
    label = operator.replace("_", " ") + dose
    twins = [v for v in among if v != name and v.rpartition(":")[0] == name.rpartition(":")[0]]
    return f"{label}, seed {seed}" if twins and seed else label
