"use strict";
(() => {
  // Tables: a click on a head sorts; what has no number stays at the end.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return null;
    if (cell.dataset.k !== undefined) return Number(cell.dataset.k);
    return cell.classList.contains("none") ? null : cell.textContent.toLowerCase();
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * (typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0);
  };
  const sortBy = (table, column) => {
    const heads = table.tHead.rows[0].cells;
    const head = heads[column];
    const now = head.getAttribute("aria-sort");
    const next = now ? (now === "ascending" ? "descending" : "ascending")
      : head.classList.contains("n") ? "descending" : "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const rows = Array.from(table.tBodies[0].rows, (row, i) => [keyOf(row, column), i, row]);
    rows.sort((a, b) => compare(a[0], b[0], sign) || a[1] - b[1]);
    table.tBodies[0].append(...rows.map((r) => r[2]));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sortBy(table, column));
      head.replaceChildren(button);
    });
  }

  // Find: rows of the table below, and what can be unfolded in the same section.
  for (const filter of document.querySelectorAll(".filter")) {
    const input = filter.querySelector("input");
    const section = filter.closest("section");
    const rows = section.querySelectorAll("table.sortable")[0].tBodies[0].rows;
    const items = section.querySelectorAll(":scope > .items > details");
    filter.hidden = false;
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (element) => {
        const text = element.textContent.toLowerCase();
        return wanted.every((word) => text.includes(word));
      };
      let seen = 0;
      for (const row of rows) { row.hidden = !fits(row); seen += !row.hidden; }
      for (const item of items) item.hidden = !fits(item.querySelector("summary"));
      filter.querySelector("[role=status]").textContent = wanted.length ? `${seen} found` : "";
    });
  }

  // A link to a folded place unfolds it.
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let e = target.closest("details"); e; e = e.parentElement.closest("details")) {
      e.hidden = false;
      e.open = true;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
