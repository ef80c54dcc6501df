"use strict";
// What a page of the viewer does beyond reading: it follows a running experiment, and obeys keys.
(() => {
  const running = document.querySelector("[data-progress]");
  if (running && "EventSource" in window) {
    const events = new EventSource(running.dataset.progress);
    events.addEventListener("message", (event) => {
      const lines = JSON.parse(event.data);
      for (const place of running.querySelectorAll("[data-key]")) {
        const line = lines.find((l) => l.key === place.dataset.key);
        const bar = place.querySelector("progress");
        bar.value = line ? line.stored : bar.max;
        place.querySelector("[role=status]").textContent = line ? line.line : "finished";
      }
      if (!lines.length) events.close();
    });
  }

  // Arrows left and right: the page before and after. "/" goes to the first field of a filter.
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea, [tabindex]") || event.ctrlKey || event.altKey || event.metaKey) return;
    const link = { ArrowLeft: "a[rel=prev]", ArrowRight: "a[rel=next]" }[event.key];
    const place = link && document.querySelector(link);
    if (place) place.click();
    if (event.key === "/") {
      const field = document.querySelector("form.filter-form input:not([type=hidden]), form.filter-form select");
      if (field) { event.preventDefault(); field.focus(); }
    }
  });

  // A filter applies at once; without this script its button does.
  for (const select of document.querySelectorAll("form.filter-form select")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }
})();
