"""What must be refused, and what a browser is told not to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.store import Store
from tests.view.conftest import HOST, Browser, Open

ORIGIN = {"origin": f"http://{HOST}"}


def test_the_token_opens_the_viewer_once(store: Path) -> None:
    with Store(store) as opened:
        first = Browser(opened)
        assert first.get("/").status_code == 403
        assert first.get("/", token="guess").status_code == 403
        answer = first.client.get("/", params={"token": first.access.token}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert first.get("/").status_code == 200
        first.client.cookies.clear()
        again = first.get("/", token=first.access.token)
        assert (again.status_code, "used already" in again.text) == (403, True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:8000"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"cookie": "agenteval_8000=guess"}, 403),
    ],
)
def test_other_hosts_pages_and_cookies_are_refused(
    browser: Open, headers: dict[str, str], status: int
) -> None:
    client = browser(labelling=True).client
    if "cookie" in headers:
        client.cookies.clear()
    assert client.get("/", headers=headers).status_code == status


def test_forms_need_origin_token_and_labelling(browser: Open) -> None:
    reading, writing = browser(), browser(labelling=True)
    fields = {"name": "q", "n": "3", "by": "random", "seed": "0"}
    good = {**fields, "form_token": writing.access.form_token}
    post = writing.client.post
    assert post("/label/queue", data=good).status_code == 403  # no origin
    assert post("/label/queue", data=fields, headers=ORIGIN).status_code == 403  # no token
    other = {**fields, "form_token": reading.access.form_token}
    assert post("/label/queue", data=other, headers=ORIGIN).status_code == 403  # a stale token
    assert reading.send("/label/queue", **fields).status_code == 403  # read only
    assert "there is no queue" in writing.get("/label/results", queue="q").text
    assert post("/label/queue", data=good, headers=ORIGIN).status_code == 200
    assert writing.client.put("/label/queue", headers=ORIGIN).status_code == 405


def test_every_answer_forbids_scripts_of_others_and_frames(browser: Open) -> None:
    client = browser().client
    for path in ("/", "/label", "/static/page.css", "/nowhere"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
    assert client.get("/static/..%2fserver.py").status_code == 404
    assert client.get("/static/server.py").status_code == 404
