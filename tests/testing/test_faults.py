"""The plan of faults, Retry-After forms and latencies; no sockets."""

from __future__ import annotations

import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.errors import InputError
from agenteval.testing.faults import Asked, Fault, Latency, Rule, draw, rule_from_json
from agenteval.testing.wire import RETRY_AFTER_FORMS, http_bytes


def asked(
    key: str = "k",
    n: int = 0,
    *,
    ordinal: int = 0,
    chat: bool = True,
    text: str = "",
    seed: int = 1,
) -> Asked:
    return Asked(seed, key, n, ordinal, chat, lambda: text)


def test_draws_are_uniform_and_depend_on_every_part() -> None:
    values = [draw("x", i) for i in range(5000)]
    assert stats.kstest(values, "uniform").pvalue > 0.001
    assert len(set(values)) == 5000
    assert draw("x", 1) == draw("x", 1)
    assert draw("x", 1, "") != draw("x", 1)


def test_first_counts_per_request_and_at_counts_for_the_server() -> None:
    first = Rule(Fault("reset"), first=2)
    assert [first.strikes(asked("a", n), 0) is not None for n in range(4)] == [1, 1, 0, 0]
    assert first.strikes(asked("b", 0, ordinal=99), 0) is not None
    at = Rule(Fault("reset"), at=(1, 3))
    assert [at.strikes(asked(ordinal=i), 0) is not None for i in range(5)] == [0, 1, 0, 1, 0]


def retry_after(form: str) -> str:
    head = http_bytes(429, b"", RETRY_AFTER_FORMS[form]).decode("latin-1")
    (line,) = [x for x in head.split("\r\n") if x.startswith("retry-after:")]
    return line.removeprefix("retry-after: ")


@pytest.mark.parametrize(
    ("form", "low", "high"),
    [
        ("date", 1, 2.1),
        ("rfc850 date", 1, 2.1),
        ("asctime date", 1, 2.1),
        ("past date", -60, -58.9),
    ],
)
def test_dates_are_counted_from_the_moment_of_sending(form: str, low: float, high: float) -> None:
    before = time.time()
    parsed = email.utils.parsedate_tz(retry_after(form))
    assert parsed is not None
    # asctime has no zone; RFC 9110 says that it is in GMT, as is assumed by the library
    moment = email.utils.mktime_tz((*parsed[:9], parsed[9] or 0))
    assert before + low <= moment + 1e-6
    assert moment <= time.time() + high


@pytest.mark.parametrize(
    ("latency", "law"),
    [
        (Latency("uniform", 0.1, 0.3), stats.uniform(0.1, 0.2)),
        (Latency("exponential", 0.2), stats.expon(scale=0.2)),
        (Latency("lognormal", 0.1, 0.5), stats.lognorm(s=0.5, scale=0.1)),
    ],
)
@given(u=st.floats(1e-6, 1 - 1e-6))
def test_latency_quantiles_are_those_of_scipy(latency: Latency, law: object, u: float) -> None:
    assert latency.at(u) == pytest.approx(law.ppf(u), rel=1e-6)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        7,
        {},
        {"fault": "reset"},
        {"fault": {"kind": "nonsense"}},
        {"fault": {"kind": "status", "status": 99}},
        {"fault": {"kind": "status", "colour": 1}},
        {"fault": {"kind": "hang", "seconds": 1e9}},
        {"fault": {"kind": "hang", "seconds": float("nan")}},
        {"fault": {"kind": "hang", "seconds": "1"}},
        {"fault": {"kind": "status", "headers": {"a": "b\r\nc: d"}}},
        {"fault": {"kind": "status", "headers": [1]}},
        {"fault": {"kind": "reset"}, "probability": 1.1},
        {"fault": {"kind": "reset"}, "probability": "often"},
        {"fault": {"kind": "reset"}, "first": 1.5},
        {"fault": {"kind": "reset"}, "at": 3},
        {"fault": {"kind": "reset"}, "match": "("},
        {"fault": {"kind": "reset"}, "when": "now"},
    ],
)
def test_bad_rules_are_refused_and_the_place_is_named(value: object) -> None:
    with pytest.raises(InputError, match=r"^here: "):
        rule_from_json(value, "here")


def test_a_rule_of_a_script_is_the_rule_of_the_library() -> None:
    script = {
        "fault": [{"kind": "status", "status": 503}, {"kind": "reset"}],
        "first": 1,
        "at": [4],
    }
    assert rule_from_json(script, "here") == Rule(
        (Fault("status", 503), Fault("reset")), first=1, at=(4,)
    )
