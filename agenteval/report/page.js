"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, kind) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const add = (parent, ...children) => { parent.append(...children); return parent; };

  // Tables: a click on a head sorts; what has no number stays at the end.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return null;
    if (cell.dataset.k !== undefined) return Number(cell.dataset.k);
    return cell.classList.contains("n") ? null : cell.textContent.toLowerCase();
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * (typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0);
  };
  const sortBy = (table, column) => {
    const heads = table.tHead.rows[0].cells;
    const head = heads[column];
    const numeric = head.classList.contains("n");
    const now = head.getAttribute("aria-sort");
    const next = now ? (now === "ascending" ? "descending" : "ascending")
      : numeric ? "descending" : "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const rows = Array.from(table.tBodies[0].rows, (row, i) => [keyOf(row, column), i, row]);
    rows.sort((a, b) => compare(a[0], b[0], sign) || a[1] - b[1]);
    table.tBodies[0].append(...rows.map((r) => r[2]));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = make("button", head.textContent);
      button.type = "button";
      button.addEventListener("click", () => sortBy(table, column));
      head.replaceChildren(button);
    });
  }

  // A link to a folded criterion unfolds it.
  const unfold = () => {
    const target = location.hash.startsWith("#c-") ? byId(location.hash.slice(1)) : null;
    if (target) { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", unfold);

  // Runs: find, and open one.
  const list = byId("runs-table");
  const find = byId("find");
  byId("filter").hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let seen = 0;
    for (const row of list.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((w) => text.includes(w));
      seen += !row.hidden;
    }
    byId("found").textContent = wanted.length ? `${seen} found` : "";
  });

  const names = JSON.parse(byId("names").textContent);
  const at = Object.fromEntries(names.rating.map((name, i) => [name, i]));
  const read = (rating, field) => {
    const value = rating[at[field]];
    return value === undefined ? "" : value;
  };
  const two = (value) => value.toFixed(2).replace("-", "−");
  const mean = (ratings) => {
    const values = ratings.map((r) => read(r, "value")).filter((v) => typeof v === "number");
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };
  const of = (run, variant, criterion) => run.ratings.filter(
    (r) => read(r, "variant") === variant && (criterion === undefined || read(r, "criterion") === criterion));
  const criteriaOf = (run) => [...new Set(run.ratings.map((r) => read(r, "criterion")))].sort((a, b) => a - b);

  const text = (content) => { const box = make("pre", content); box.dir = "auto"; box.tabIndex = 0; return box; };
  const original = () => names.variants.indexOf("original");

  const card = (run, variant, criterion) => {
    const own = of(run, variant, criterion);
    const box = make("div", undefined, "card");
    const average = mean(own);
    add(box, make("h4", names.criteria[criterion] + (average === null ? "" : `  ${two(average)}`)));
    for (const rating of own) {
      const status = names.statuses[read(rating, "status")];
      const failed = status.includes(":");
      const line = make("p");
      const value = read(rating, "value");
      add(line, make("span", `repeat ${read(rating, "repeat") + 1} `, "quiet"),
        make("strong", read(rating, "label") || status, failed ? "bad" : ""),
        typeof value === "number" ? ` ${two(value)}` : "");
      if (!failed && status !== "scored" && read(rating, "label")) add(line, make("span", ` ${status}`, "quiet"));
      add(box, line);
      if (read(rating, "explanation")) add(box, make("p", read(rating, "explanation")));
      if (read(rating, "evidence")) add(box, make("p", read(rating, "evidence"), "evidence"));
      if (read(rating, "raw")) {
        const more = make("details");
        add(box, add(more, make("summary", "reply that could not be used"), text(read(rating, "raw"))));
      }
    }
    return box;
  };

  // Edits: a number keeps, a negative one leaves out of the original, a text comes in.
  const panes = (trajectory, edits) => {
    const left = text(), right = text();
    let place = 0, first = true;
    for (const edit of edits) {
      if (first && !(edit > 0)) {
        left.append(make("i", undefined, "mark")); right.append(make("i", undefined, "mark"));
        first = false;
      }
      if (typeof edit === "string") add(right, make("ins", edit));
      else if (edit < 0) { add(left, make("del", trajectory.slice(place, place - edit))); place -= edit; }
      else {
        const kept = trajectory.slice(place, place + edit);
        left.append(kept); right.append(kept); place += edit;
      }
    }
    const side = (title, box) => add(make("div"), make("h4", title), box);
    return add(make("div", undefined, "panes"), side("original", left), side("copy", right));
  };

  const changes = (run, variant) => {
    const wrap = make("div", undefined, "scroll");
    const table = make("table");
    const head = table.createTHead().insertRow();
    for (const [name, kind] of [["criterion", ""], ["original", "n"], ["copy", "n"], ["original minus copy", "n"]])
      head.append(make("th", name, kind));
    const body = table.createTBody();
    for (const criterion of criteriaOf(run)) {
      const before = mean(of(run, original(), criterion)), after = mean(of(run, variant, criterion));
      const row = body.insertRow();
      const change = before === null || after === null ? "–" : two(before - after);
      add(row, make("th", names.criteria[criterion]), make("td", before === null ? "–" : two(before), "n"),
        make("td", after === null ? "not rated" : two(after), "n"), make("td", change, "n"));
    }
    return add(wrap, table);
  };

  const copies = (run) => {
    const box = make("div");
    const choice = make("select");
    choice.id = "copy";
    run.copies.forEach(([variant], i) => {
      const option = make("option", names.variants[variant]);
      option.value = i;
      choice.append(option);
    });
    const label = add(make("label", "Perturbation "), choice);
    const place = make("div");
    const draw = () => {
      const [variant, edits] = run.copies[Number(choice.value)];
      const said = make("details");
      const cards = make("div", undefined, "cards");
      add(said, make("summary", "what the judge said of the copy"), cards);
      for (const criterion of criteriaOf(run)) if (of(run, variant, criterion).length) cards.append(card(run, variant, criterion));
      place.replaceChildren(changes(run, variant), panes(run.trajectory, edits), said);
      for (const mark of place.querySelectorAll(".mark")) {
        const box = mark.parentElement;  // both sides begin to be read where they first differ
        box.scrollTop = mark.getBoundingClientRect().top - box.getBoundingClientRect().top - 60;
      }
    };
    choice.addEventListener("change", draw);
    return [add(box, make("h3", "Perturbed copies"), add(make("p"), label), place), draw];
  };

  const open = (id) => {
    const block = byId(id);
    if (!block || !/^run-\d+$/.test(id)) return;
    const run = JSON.parse(block.textContent);
    const body = byId("detail-body");
    byId("detail-title").textContent = run.id;
    const label = run.outcome === "unknown" ? "success unknown" : run.outcome;
    body.replaceChildren(make("p", [run.system, label, `case ${run.case}`].filter(Boolean).join(" · "), "quiet"));
    if (run.signs && run.signs.length) {
      const flags = make("p", "This text seems to talk to the judge: ", "signs");
      for (const sign of run.signs) add(flags, make("span", sign, "badge drop"), " ");
      add(body, flags);
    }
    if (run.problem !== undefined) {
      add(body, make("h3", "Problem"), text(run.problem || "(empty)"), make("h3", "What the judge saw of the run"), text(run.trajectory || "(empty)"));
      if (run.reference) add(body, make("p", "The judge was shown the reference answer as well.", "quiet"));
    }
    const cards = make("div", undefined, "cards");
    for (const criterion of criteriaOf(run)) if (of(run, original(), criterion).length) cards.append(card(run, original(), criterion));
    add(body, make("h3", "What the judge said"), cards);
    const dialog = byId("detail");
    if (!dialog.open) dialog.showModal();
    if (run.copies && run.copies.length) {
      const [box, draw] = copies(run);
      body.append(box);
      draw();  // now that it has a size and can scroll
    }
    dialog.scrollTop = 0;
    history.replaceState(null, "", `#${id}`);
  };
  byId("detail").addEventListener("close", () => history.replaceState(null, "", "#runs"));
  for (const place of document.querySelectorAll("[data-open]")) {
    const button = make("button", place.textContent);
    button.type = "button";
    button.addEventListener("click", () => open(place.dataset.open));
    place.replaceChildren(button);
  }
  if (location.hash.startsWith("#run-")) open(location.hash.slice(1));
  unfold();
})();
