"""The viewer in a real browser: hostile texts stay text, pages work by keys and without scripts."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from agenteval.readers import make_view
from agenteval.records import CallRecord, CellKey, Criterion, Failure, Run, Score, Source
from agenteval.records.trial import Trial, TrialCase, TrialSystem
from agenteval.records.verification import (
    Check,
    Effect,
    JudgeEvidence,
    JudgeVerdict,
    Verification,
    VerifiedSet,
)
from agenteval.store import Store, Trials
from agenteval.text import encodable
from agenteval.view.application import make_app
from agenteval.view.security import Access
from agenteval.view.server import Viewer
from tests.support.payloads import hidden_in, payloads

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
TEXTS = list(payloads().values())


def fill(path: Path) -> list[str]:
    """Store every payload in every text of runs, copies, judges, verdicts and trials; return the
    addresses of the pages that show them."""
    every = "\n\n".join(TEXTS)
    source = Source(evaluator="test", version=1, model=every)
    judge, keys = source.sha256[:12], []
    pages = [f"/grid?judge={judge}&sort=spread", f"/grid?judge={judge}&by=c0"]
    pages += ["/", "/grid", "/compare", "/trust", "/trials"]
    with Store(path) as store:
        for i, text in enumerate(TEXTS):
            name = "".join(c if c.isprintable() else "." for c in text)[:200] or "."
            criterion = Criterion(
                id=f"c{i}", name=name, description=every, accepted_values=(name, "good")
            )
            runs = [
                Run(
                    id=f"{i} {name}",
                    system=f"{side} {every[:2000]}",
                    task="t",
                    input=f"{text} {i}",
                    output=f"{every} {side}",
                    success=side == "a",
                )
                for side in "ab"
            ]
            views = [make_view(run) for run in runs]
            changed = {"trajectory": every[:-40], "origin": views[0].sha256}
            copy = views[0].model_copy(update=changed)
            items = [*zip(runs, views, strict=True), (runs[0], copy)]
            store.register(items, [criterion], source)
            for view in (*views, copy):
                key = CellKey(
                    run=view.sha256,
                    variant=f"drop:{encodable(text[:50])}:s0" if view is copy else "original",
                    criterion=criterion.sha256,
                    source=source.sha256,
                    repeat=0,
                )
                result = answer(key, criterion, text, failed=view is views[1])
                asyncio.run(store.save([result], CallRecord(raw=text, model=text[:100])))
            keys.append(views[0].sha256)
            pages.append(f"/run?item={keys[-1]}")
        store.save_verdict(source.sha256, every, verified())
        pages += [f"/compare/case?a={a}&b={b}" for a, b in pairwise(keys[:4])]
        pages += fill_trials(store)
    return pages


def answer(key: CellKey, criterion: Criterion, text: str, *, failed: bool) -> Score | Failure:
    if failed:
        return Failure(key=key, criterion_id=criterion.id, status="unscored:parse", message=text)
    return Score(
        key=key,
        criterion_id=criterion.id,
        label=criterion.accepted_values[0],
        value=0.0,
        explanation=text,
        evidence={text[:100]: text},
    )


def verified() -> VerifiedSet:
    criteria = []
    for i, text in enumerate(TEXTS):
        effect = Effect(
            variant=text,
            operator=text[:80],
            expected="lower",
            outcome="pass",
            reason=text,
            estimate=0.1,
        )
        check = Check(name="agreement", outcome="pass", reason=text, estimate=0.5, unit=text)
        criteria.append(
            Verification(
                criterion_id=f"c{i}",
                verdict="drop",
                reasons=(text,),
                runs=1,
                cases=1,
                repeats=1,
                checks=(check,),
                effects=(effect,),
            )
        )
    evidence = [
        JudgeEvidence(name=text, standing="shown", reason=text, unit=text, estimate=0.3)
        for text in TEXTS
    ]
    texts = tuple(TEXTS)
    judge = JudgeVerdict(
        verdict="not enough data",
        reasons=texts,
        next_step=texts[0],
        warnings=texts,
        evidence=tuple(evidence),
    )
    return VerifiedSet(judge=judge, criteria=tuple(criteria))


def fill_trials(store: Store) -> list[str]:
    trials, every = Trials(store), "\n\n".join(TEXTS)
    pages = []
    for i, text in enumerate(TEXTS):
        system = TrialSystem(key=f"{i:064}", name=text[:500] or "s", parameters={})
        case = TrialCase(key=f"{i + 1000:064}", id=text[:500] or "c", body={"text": text})
        trials.add_cases("planning", [case])
        trials.add_system("planning", system)
        trial = Trial(
            evaluator="planning",
            system_key=system.key,
            case_key=case.key,
            trial=0,
            case_id=case.id,
            status="error:infrastructure",
            log={"status": "error:infrastructure", "message": every},
        )
        asyncio.run(trials.save(trial))
        pages.append(f"/trial?call={trial.call_id}")
    return [*pages[:3], *(f"/trials?page={i}" for i in (1, 2, 3))]


@dataclass
class Served:
    base: str
    url: str
    pages: list[str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("hostile") / "s.db"
    pages: list[str] = []
    filling = threading.Thread(target=lambda: pages.extend(fill(path)))
    filling.start()  # asyncio.run needs a thread without playwright's loop
    filling.join()
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    with Store(path, create=False) as store:
        access = Access(port, ("127.0.0.1",))
        config = uvicorn.Config(
            make_app(Viewer(store, access)), log_level="warning", access_log=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: server.run(sockets=[sock]))
        thread.start()
        base = f"http://127.0.0.1:{port}"
        yield Served(base, f"{base}/?token={access.token}", pages)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def state(chromium: Any, served: Served) -> Any:
    context = chromium.new_context()
    context.new_page().goto(served.url)
    return context.storage_state()


def test_hostile_texts_stay_text_on_every_page(chromium: Any, served: Served, state: Any) -> None:
    context = chromium.new_context(storage_state=state, viewport={"width": 390, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text))
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("dialog", lambda d: (problems.append(d.message), d.dismiss()))
    page.on(
        "request",
        lambda r: problems.append(r.url) if not r.url.startswith((served.base, "data:")) else None,
    )
    assert len(served.pages) > len(TEXTS)
    for address in served.pages:
        answer = page.goto(served.base + address)
        assert answer.status == 200, address
        page.locator("details").evaluate_all("es => es.forEach(e => e.open = true)")
        assert page.title().endswith("agenteval"), address
        assert not hidden_in(page.locator("body").inner_text()), address
        assert page.locator("main iframe, main base, main object, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
        assert not problems, (address, problems)
    context.close()


def test_pages_are_read_without_scripts(chromium: Any, served: Served, state: Any) -> None:
    context = chromium.new_context(storage_state=state, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.base}/grid")
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    assert page.get_by_role("heading", name="Conversation").count() == 1
    page.get_by_role("link", name="Grid", exact=True).click()
    page.locator("summary").first.click()
    page.locator("select[name=status]").select_option("failure")
    page.get_by_role("button", name="Show").click()
    assert "status=failure" in page.url
    assert page.locator("table.grid tbody tr").count() == min(len(TEXTS), 50)
    context.close()


def test_the_keyboard_reaches_the_filter(chromium: Any, served: Served, state: Any) -> None:
    context = chromium.new_context(storage_state=state)
    page = context.new_page()
    page.goto(f"{served.base}/grid")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("/")
    page.locator("body").press("/")
    assert page.evaluate("document.activeElement.name") == "judge"
    context.close()
