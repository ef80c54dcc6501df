"use strict";
// Selected text of a span becomes the evidence of the finding.
(() => {
  const form = document.getElementById("finding");
  const take = () => {
    const selection = getSelection();
    const text = String(selection || "").trim();
    if (!text || !selection.anchorNode) return;
    const start = selection.anchorNode.parentElement;
    const span = start && start.closest("[data-span]");
    if (!span) return;
    form.elements.span.value = span.dataset.span;
    form.elements.evidence.value = text;
  };
  document.addEventListener("mouseup", take);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); form.requestSubmit(); return; }
    if (event.target.matches("textarea, select, input") || event.ctrlKey || event.metaKey) return;
    if (event.key === "e") { event.preventDefault(); take(); form.elements.category.focus(); }
  });
})();
