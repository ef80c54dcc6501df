"""From what a command left behind to the figures that are frozen: one extractor for each command.

An extractor returns a mapping that does not depend on the layout of the command's JSON or files,
only on what they say: values, n, intervals, statuses, verdicts, by the names of the field. Where a
layout changes, its extractor changes and the frozen figures stay. A key that ends in "~" holds a
figure that was drawn (the end of a bootstrap interval): it is compared loosely.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np


@dataclass(frozen=True)
class Done:
    """What a command left behind: in `folder`, of which `written` did not exist before."""

    words: list[str]
    code: int
    out: str
    err: str
    folder: Path
    written: list[str]

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def option(self, *names: str) -> Path:
        """The file that the command was told to use by this option."""
        place = next(i for i, word in enumerate(self.words) if word in names)
        return self.folder / self.words[place + 1]


Figures = Mapping[str, Any]
Extractor = Callable[[Done], Figures]


def plain(value: Any) -> Any:
    """Nested values without dataclasses, arrays, tuples; an interval keeps mean, ends and sizes."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        if {"mean", "low", "high", "method"} <= value.keys():
            return _interval(value)
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def _interval(value: Mapping[str, Any]) -> dict[str, Any]:
    drawn = "~" if "resamples" in value["method"] else ""
    ends = {f"low{drawn}": value["low"], f"high{drawn}": value["high"]}
    return {"mean": value["mean"], **ends, "n": value["n"], "units": value["n_clusters"]}


def pick(value: Mapping[str, Any], names: str) -> dict[str, Any]:
    """The named figures (in words, "a b")."""
    return {name: plain(value[name]) for name in names.split()}


def by(rows: Iterable[Mapping[str, Any]], keys: str, names: str) -> dict[str, Any]:
    """The named figures of each row, under the values of its `keys`."""
    return {"/".join(str(row[k]) for k in keys.split()): pick(row, names) for row in rows}


# -- every command ---------------------------------------------------------------------------------


def nothing(done: Done) -> Figures:
    """The exit code alone."""
    return {}


def refused(done: Done) -> Figures:
    """How many lines said so, and what was written all the same."""
    said = [line for line in done.err.splitlines() if line.startswith(("agenteval: ", "Error: "))]
    return {"lines": len(said), "written": done.written, "output": bool(done.out)}


def files(done: Done) -> Figures:
    """What was written."""
    return {"written": sorted({name.split("/")[0] for name in done.written})}


def dry(done: Done) -> Figures:
    """How many requests it would take, by who is asked; tokens follow the words of prompts."""
    told = done.json
    parts = {
        part["who"]: {end: part[end]["requests"] for end in ("least", "most")}
        for part in told["parts"]
    }
    return {
        "requests": told["requests"],
        "exact": told["exact"],
        "parts": parts,
        "written": done.written,
    }


# -- criteria, scores ------------------------------------------------------------------------------


def criteria_file(done: Done) -> Figures:
    """The criteria that were written: levels in their order, and from how many seeds."""
    path = done.option("-o", "--output")
    made = json.loads(path.read_text("utf-8")) if path.exists() else {"criteria": []}
    rows = {}
    for one in made["criteria"]:
        about = one.get("provenance", {})
        rows[one["name"]] = {
            "levels": one["accepted_values"],
            "order": one.get("order"),
            "seeds": about.get("seeds"),
            "names": sorted({m["name"] for m in about.get("members", ())}),
            "expect": one.get("expect"),
        }
    return {"criteria": rows, "written": done.written}


def scores(done: Done) -> Figures:
    """The table of `quantify` and `show`: means by criterion and system, and what is missing."""
    told = done.json
    rows = _score_rows({key: table["rows"] for key, table in told["tables"].items()})
    return {
        "rows": rows,
        "unfinished": sum(
            one.get("left", 0) for one in told.get("unfinished", ()) if isinstance(one, dict)
        ),
        **pick(told, "runs ratings failures"),
        "flagged": sorted(str(one.get("run", one)) for one in told["flagged"]),
    }


def _score_rows(tables: Mapping[str, list[Mapping[str, Any]]]) -> dict[str, Any]:
    """One entry for each criterion and system, from all tables that tell of it."""
    rows: dict[str, Any] = {}
    empty = {"mean": None, "low": None, "high": None, "n": 0, "units": 0}
    for name in ("scores", "unrated", "outcomes", "levels", "missing", "bounds"):
        for row in tables.get(name, ()):
            key = f"{row['criterion_id']}/{row['system']}"
            own = rows.setdefault(
                key,
                {
                    "labels": {},
                    "failures": {},
                    "bounds": None,
                    "success": empty,
                    "failed": empty,
                    "not_applicable": 0,
                    "degenerate": 0,
                },
            )
            if name in ("scores", "unrated"):
                own["overall"] = _estimate(row["mean"])
            elif name == "outcomes":
                own |= {side: _estimate(row[side]) for side in ("success", "failed")}
            elif name == "levels":
                own["labels"][row["level"]] = row["ratings"]
            elif name == "missing" and ":" in row["status"]:
                own["failures"][row["status"]] = row["cells"]
            elif name == "missing":
                own[row["status"]] = row["cells"]
            else:
                own["bounds"] = None if row["worst"] is None else [row["worst"], row["best"]]
                if row["without"] is not None:
                    own["without_degenerate"] = _estimate(row["without"])
    for own in rows.values():
        own.setdefault("without_degenerate", own.get("overall"))
    return rows


def asked(done: Done) -> Figures:
    """As `scores`, with how many requests the judge has taken so far."""
    return {**scores(done), "requests": done.json["usage"]["requests"]}


def pairs(done: Done) -> Figures:
    """Of `prefer`: preferences, ranking, position bias, and the evidence on the judge."""
    tables = {key: table["rows"] for key, table in done.json["tables"].items()}
    keys = {"preferences": "system against", "ranking": "system", "position": "criterion"}
    keys |= {"evidence": "evidence", "verdicts": "criterion"}
    found = {
        name: by(tables[name], key, " ".join(sorted(set(tables[name][0]) - set(key.split()))))
        for name, key in keys.items()
        if name in tables
    }
    return {**found, "requests": done.json.get("usage", {}).get("requests")}


def rows_of_tables(done: Done) -> Figures:
    """Of `store info`: how many rows each table holds."""
    return {row["table"]: row["rows"] for row in done.json["tables"]["tables"]["rows"]}


def evaluation(done: Done) -> Figures:
    """Of `run`: the exit code of each step, means, verdicts, and what was written."""
    steps = done.json["steps"]
    scores = steps["quantify"]["tables"]["scores"]["rows"]
    compared = steps.get("compare", {"tables": {}})["tables"]
    return {
        "codes": {name: step["exit_code"] for name, step in steps.items()},
        "means": by(scores, "criterion system", "mean"),
        "judge": steps.get("verify", {}).get("judge", {}).get("verdict"),
        "compared": {
            k: by(t["rows"], "criterion", "verdict")
            for k, t in compared.items()
            if k.endswith("rows")
        },
        "written": sorted({name.split("/")[0] for name in done.written}),
    }


def sources(done: Done) -> Figures:
    rows = done.json["tables"]["sources"]["rows"]
    return {"judges": [pick(one, "evaluator seed way requests") for one in rows]}


def one_run(done: Done) -> Figures:
    rows = done.json["tables"]["results"]["rows"]
    return {
        f"{row['criterion_id']}/original/{row['repeat']}": pick(row, "status value")
        | {"label": row["level"]}
        for row in rows
    }


def exported(done: Done) -> Figures:
    """Rows of an exported file, whatever its format."""
    path = done.folder / done.words[1]
    rows: list[dict[str, Any]]
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = [{k: v or None for k, v in row.items()} for row in csv.DictReader(file)]
        for row in rows:
            row["value"] = None if row["value"] is None else float(row["value"])
    else:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    names = "system status label value"
    means: dict[str, list[float]] = {}
    for row in rows:
        if row["value"] is not None:
            means.setdefault(f"{row['criterion_id']}/{row['variant']}", []).append(row["value"])
    return {
        "rows": len(rows),
        "status": Counter(row["status"] for row in rows),
        "labels": Counter(f"{row['criterion_id']}: {row['label']}" for row in rows),
        "means": {name: {"mean": np.mean(v), "n": len(v)} for name, v in means.items()},
        "some": dict(sorted(by(rows, "run_id variant criterion_id repeat", names).items())[:20]),
    }


# -- trust -----------------------------------------------------------------------------------------

_CHECK = "outcome estimate low high n"
_EFFECT = f"{_CHECK} expected p p_adjusted pairs fell rose tied missing unchanged shorter"


def verification(done: Done) -> Figures:
    """Verdicts of judge and criteria, with every check and effect behind them."""
    told = json.loads(done.out)
    rows = {}
    for one in told["criteria"]:
        rows[one["criterion_id"]] = {
            **pick(one, "verdict runs cases repeats coverage mean low high"),
            "partner": one["partner"],
            "checks": {c["name"]: _check(c) for c in one["checks"]},
            "effects": by(one["effects"], "variant", _EFFECT),
        }
    probes = {p["name"]: _probe(p) for p in told.get("probes", ())}
    standing = {e["name"]: e["standing"] for e in told["judge"]["evidence"]}
    return {
        "judge": told["judge"]["verdict"],
        "evidence": standing,
        "subset": told["subset"],
        "criteria": rows,
        **({"probes": probes} if probes else {}),
    }


def _check(check: Mapping[str, Any]) -> dict[str, Any]:
    """The agreement of repeats has a bootstrap interval."""
    drawn = "~" if check["name"] == "agreement" else ""
    return {
        **pick(check, "outcome estimate n"),
        f"low{drawn}": check["low"],
        f"high{drawn}": check["high"],
    }


def _probe(probe: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "outcome": probe["outcome"],
        "checks": {c["name"]: pick(c, "outcome estimate n") for c in probe["checks"]},
    }


def verified_file(done: Done) -> Figures:
    """As `verification`, and the verdicts that stand in the criteria file that was written."""
    made = json.loads(done.option("-o", "--output").read_text("utf-8"))
    kept = {one["id"]: one["verification"]["verdict"] for one in made["criteria"]}
    return {**verification(done), "written verdicts": kept}


def _estimate(cell: Mapping[str, Any] | None, *, drawn: bool = False) -> dict[str, Any]:
    """A cell of a table as the interval it was made of."""
    mark = "~" if drawn and cell["value"] is not None else ""
    ends = {f"low{mark}": cell["low"], f"high{mark}": cell["high"]}
    return {"mean": cell["value"], **ends, "n": cell["n"], "units": cell.get("units")}


def agreement(done: Done) -> Figures:
    """The judge against people by criterion; runs whose label the judge contradicts."""
    tables = {key: table["rows"] for key, table in done.json["tables"].items()}
    pairs: dict[str, Any] = {}
    for row, more in zip(tables.get("agreement", ()), tables.get("coefficients", ()), strict=True):
        mine = {"judge": row["judge"], "rater": row["rater"], "criterion_id": row["criterion_id"]}

        def of(key: str, mine: Mapping[str, Any] = mine) -> list[Mapping[str, Any]]:
            return [r for r in tables.get(key, ()) if mine.items() <= r.items()]

        left_out = of("left_out")
        crossed = [t for key in tables if key.startswith("confusion_") if (t := of(key))]
        levels = [r["level"].partition(" ")[2] for t in crossed for r in t]
        pairs.setdefault(f"{row['judge']}/{row['rater']}", {})[row["criterion_id"]] = {
            "measure": more["measure"],
            "n": more["n"],
            "cases": more["cases"],
            "exact": _estimate(row["exact"]),
            **{name: _estimate(more[name], drawn=True) for name in ("kappa", "weighted")},
            "alpha": _estimate(row["alpha"], drawn=True),
            "spearman": _estimate(more["spearman"], drawn=True),
            **pick(more, "judge_mean label_mean tied"),
            "bias": _estimate(more["bias"]),
            "confusion": [[r[str(j + 1)] for j in range(len(levels))] for t in crossed for r in t],
            "levels": levels,
            "failures": {r["reason"]: r["n"] for r in left_out if r["what"] != "runs"},
            "left_out": {r["reason"]: r["n"] for r in left_out if r["what"] == "runs"},
            "corrected": next(iter(of("corrected")), None),
        }
    audit: dict[str, Any] = {}
    for row in tables.get("auc", ()):
        own = audit.setdefault(row["judge"], {"suspects": {}, "auc": {}})
        own["auc"][row["criterion_id"]] = {
            name: _estimate(row[name]) for name in ("all_runs", "without")
        }
    for row in tables.get("audit", ()):
        against = row["against"].split(", ") if row["against"] else []
        audit[row["judge"]]["suspects"][row["run"]] = pick(row, "success outlying") | {
            "against": against
        }
    return {"pairs": pairs, "audit": audit}


def comparison(done: Done) -> Figures:
    """Differences and verdicts by criterion, gates, and the cases that both have."""
    told = done.json
    tables = {key: table["rows"] for key, table in told["tables"].items()}
    rows: dict[str, Any] = {}
    for row, test in zip(tables["rows"], tables["tests"], strict=True):
        first, second = (
            _estimate(one["mean"])
            for one in tables["sides"]
            if one["criterion"] == row["criterion"]
        )
        names = "lost inapplicable wins ties losses correlation detectable cases_to_decide"
        rows[row["criterion"]] = {
            **pick(row, "n verdict"),
            **pick(test, names),
            "first": first,
            "second": second,
            "difference": _estimate(row["difference"]),
        }
        drawn = "~" if "random" in (test["test"] or "") else ""
        for p in ("p", "p_holm", "p_regression", "p_regression_holm"):
            rows[row["criterion"]][p + drawn] = test[p]
    figures: dict[str, Any] = {
        "rows": rows,
        "gates": {
            f"{gate['name']}/{gate['criterion']}": {
                "value": gate["bound"],
                "outcome": {"met": "pass", "missed": "fail"}.get(gate["outcome"], gate["outcome"]),
            }
            for gate in told["gates"]
        },
        **pick(told, "pair_by unmatched exit_code"),
        "common": len(told["common"]),
        "only": [len(told["only_first"]), len(told["only_second"])],
    }
    if "--junit" in done.words:
        figures["junit"] = _junit(done.option("--junit"))
    return figures


def _junit(path: Path) -> list[str]:
    marks = ("failure", "error", "skipped")
    return [
        f"{case.attrib['name']}: {next((c.tag for c in case if c.tag in marks), 'passed')}"
        for case in ElementTree.parse(path).iter("testcase")
    ]


# -- planning --------------------------------------------------------------------------------------


def suite(done: Done) -> Figures:
    """Sizes of the cases of a suite; their words and demands follow the drawing."""
    path = done.option("-o")
    cases = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {
        "cases": len(cases),
        "different": len({case["request"] for case in cases}),
        "actions": Counter(len(case["actions"]) for case in cases),
        "extended": sum("durations" in case and bool(case["durations"]) for case in cases),
    }


def copies(done: Done) -> Figures:
    """Texts written by `perturb`, by variant: how many, and their characters."""
    lines = done.option("-o").read_text("utf-8").splitlines()
    texts = [(row["variant"], len(row["text"])) for row in map(json.loads, lines)]
    return {
        variant: {
            "n": sum(v == variant for v, _ in texts),
            "characters": sum(size for v, size in texts if v == variant),
        }
        for variant in sorted({variant for variant, _ in texts})
    }


def trials(done: Done) -> Figures:
    """Outcome of every trial, with what was called, lost, violated."""
    rows = {}
    for row in done.json["trials"]:
        verdict = row.get("verdict") or {}
        system = row["system"].replace(sys.executable, "python")
        rows[f"{system}/{row['case']}/{row['trial']}"] = {
            "outcome": row["outcome"],
            "sequence": [call["tool"] for call in verdict.get("sequence", ())],
            "violated": [one["constraint"] for one in verdict.get("violated", ())],
            **pick(verdict, "lost repeated attempts" if verdict else ""),
        }
    return rows


def outcomes(done: Done) -> Figures:
    """Outcomes alone, counted: what the cases are is drawn."""
    return {
        "outcomes": Counter(f"{row['actions']}: {row['outcome']}" for row in done.json["trials"])
    }


def dissections(done: Done) -> Figures:
    rows = {}
    for row in done.json["dissections"]:
        stages = {s["name"]: [t["outcome"] for t in s["tries"]] for s in row["stages"]}
        rows[row["case"]] = {"stages": stages, **pick(row, "label labels unknown runs")}
    return rows


def plan_verdicts(done: Done) -> Figures:
    """Of `plan check`: the rows of the table."""
    return {str(i): row for i, row in enumerate(done.json["tables"]["plans"]["rows"])}


def plan_tables(done: Done) -> Figures:
    """The rates of the report, and what was written."""
    tables = {key: table["rows"] for key, table in done.json["tables"].items()}
    rates = {
        f"{row['system']}/{row.get('group', 'all')}": {
            "rate": _counted_interval(row["success"], row["cases"]),
            "passes": row["right"],
            **pick(row, "failures guess"),
        }
        for row in (*tables["systems"], *tables["by-actions"])
    }
    errors: dict[str, Any] = {}
    for row in tables["errors"]:
        label = row["error"].replace(" ", "_")
        part = {"label": label, "count": row["count"]}
        part["share"] = _counted_interval(row["share"], row["cases"])
        errors.setdefault(row["system"], []).append(part)
    powers = {
        f"{row['system']}/{row['k']}": [
            _counted_interval(row["all_right"], None),
            _counted_interval(row["one_right"], None),
        ]
        for row in tables["repeated"]
    }
    return {
        "trials": len(done.json["trials"]),
        "rates": rates,
        "errors": errors,
        "powers": powers,
        "written": done.written,
    }


def _counted_interval(cell: Mapping[str, Any], units: int | None) -> dict[str, Any]:
    """A cell of a table in the form of `_interval`."""
    return {"mean": cell["value"], **pick(cell, "low high n"), "units": units}


# -- traces ----------------------------------------------------------------------------------------


def trace(done: Done) -> Figures:
    told = done.json
    return {
        "spans": {
            s["id"]: pick(s, "parent_id kind name status tokens") for s in told["trace"]["spans"]
        },
        "findings": {one["finder"]: _marks(one["findings"]) for one in told["findings"]},
    }


def _marks(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(f"{f['span']} {f['category']} {f['impact']} {f['source']}" for f in findings)


def found(done: Done) -> Figures:
    """What a finder found in each trace, with its status; and the files it wrote."""
    rows = {
        row["trace"]: {
            "marks": _marks(row["findings"]),
            "rejected": len(row["rejected"]),
            **pick(row, "status grades"),
        }
        for row in done.json["findings"]
    }
    return {"traces": rows, "written": files(done)["written"]}


def trace_scores(done: Done) -> Figures:
    """Precision, recall, F1 at every level, the official figures, and who reads nothing."""
    told = done.json
    whole = told["scores"]
    official = told["official"]
    return {
        "levels": by(whole["levels"], "level", "micro macro counts"),
        "categories": by(whole["categories"], "category", "pairs traces"),
        "coverage": plain(whole["coverage"]),
        "beside": {
            one["name"]: by(one["scores"]["levels"], "level", "counts") for one in told["beside"]
        },
        "official": None
        if official is None
        else pick(official, "weighted_f1 location joint pearson traces skipped"),
    }


def trace_stats(done: Done) -> Figures:
    names = "spans kinds depth roots errors exceptions reported kept dropped"
    return by(done.json["traces"], "trace", names)


def trace_report(done: Done) -> Figures:
    return {
        one["finder"]: {
            row["trace"]: {"marks": len(row["findings"]), "status": row["status"]}
            for row in one["findings"]
        }
        for one in done.json["findings"]
    }


# -- workflows -------------------------------------------------------------------------------------


def charts(done: Done) -> Figures:
    told = done.json
    rows = told["tables"]["checked"]["rows"]
    return {
        "checked": by(rows, "role scenario", "nodes edges errors warnings"),
        "unreadable": len(told["unreadable"]),
    }


def workflow_trials(done: Done) -> Figures:
    """The verdict on every session and turn."""
    rows = {}
    for row in done.json["trials"]:
        key = f"{row['system']}/{row['case']}/{row['trial']}"
        rows[key] = {"status": row["status"], "verdict": _workflow_verdict(row["verdict"])}
    return rows


def _workflow_verdict(verdict: Mapping[str, Any] | None) -> Any:
    if verdict is None:
        return None
    if "call" in verdict:
        return pick(
            verdict,
            "form gold_call call name_right gold_parameters given_parameters further node_right",
        )
    judge = verdict["judge"]
    return {
        **pick(
            verdict,
            "success decided_by progress state_success state_goals right gold generated "
            "unjudged sequence conforms fitness cause nodes",
        ),
        "differences": len(verdict["differences"]),
        "deviations": [pick(d, "cause at tool node") for d in verdict["deviations"]],
        "judge": judge and {k: judge.get(k) for k in ("achieved", "total", "said", "status")},
    }


def workflow_tables(done: Done) -> Figures:
    """The rates of the report, which its JSON lacks: made from the store as the report does."""
    from agenteval.store import Store
    from agenteval.workflows import tallies
    from agenteval.workflows.results import load_sessions, load_turns

    with Store(done.option("--store"), create=False) as store:
        sessions, turns = list(load_sessions(store)), list(load_turns(store))
    known = tallies.Tallies(sessions, turns)
    rates = ("success", "progress", "tool", "conforms", "fitness", "turns", "calls", "failures")
    whole, causes = {}, {}
    for tally in known.sessions_by():
        rows = [r for r in sessions if r.system == tally.system]
        whole[tally.system] = {
            **{name: plain(getattr(tally, name)) for name in rates},
            "tasks": len({r.case.task for r in rows}),
            "sequence": plain(tally.order),
            "undecided": tally.undecided_sessions,
            "unjudged": tally.undecided,
            "simulators": sum(getattr(r.log, "who", "agent") != "agent" for r in rows),
        }
        if tally.causes:
            counts = plain(tally.causes)
            causes[tally.system] = {"failed": sum(counts.values()), "counts": counts}
    figures = "turns sessions tool parameters unreadable failures"
    single = {
        f"{tally.system}/all": pick(asdict(tally.table), figures) for tally in known.turns_by()
    }
    formats = [
        pick(asdict(one), "agent first second tasks left_out difference")
        for one in tallies.format_pairs(sessions)
    ]
    return {
        "sessions": whole,
        "causes": causes,
        "turns": single,
        "formats": formats,
        "written": done.written,
    }


def workflow_scores(done: Done) -> Figures:
    """Tables of `flow score`, in either way of counting."""
    told = done.json
    if "table" not in told:
        return pick(told, "level mode figures")
    drop = {"node", "response", "usage"}
    return {
        **pick(told, "level mode"),
        "table": {k: plain(v) for k, v in told["table"].items() if k not in drop},
    }


def conversion(done: Done) -> Figures:
    told = done.json
    return {"accepted": told["accepted"], "reasons": len(told["reasons"]), "written": done.written}
