"use strict";
// Labelling by keys. The viewer posts each form; a page that was mailed keeps the labels and writes
// a file (body[data-offline]).
(() => {
  const forms = Array.from(document.querySelectorAll("form.labelling"));
  if (!forms.length) return;
  const offline = document.body.dataset.offline !== undefined;
  let form = forms[0];
  let at = 0;
  let shown = Date.now();

  const fieldsets = () => Array.from(form.querySelectorAll("fieldset[data-criterion]"));
  const answered = (f) => f.querySelector("input[type=radio]:checked") !== null;
  const mark = (index, scroll = true) => {
    const all = fieldsets();
    at = Math.max(0, Math.min(index, all.length - 1));
    all.forEach((f, i) => f.classList.toggle("current", i === at));
    const box = form.querySelector(".choices");
    if (!scroll || !all[at]) return;
    if (box.scrollHeight > box.clientHeight + 1) {
      box.scrollTop = all[at].offsetTop - box.clientHeight * 0.35;
    } else all[at].scrollIntoView({ block: "nearest" });
  };
  const open = (next) => {
    form = next;
    shown = Date.now();
    const first = fieldsets().findIndex((f) => !answered(f));
    mark(first < 0 ? 0 : first, false);
  };
  const submit = (action) => {
    const button = form.querySelector(`button[value=${action}]`);
    if (button) button.click();
  };
  const choose = (key) => {
    const field = fieldsets()[at];
    if (!field) return;
    const options = field.querySelectorAll("input[type=radio]:not([data-na])");
    const input = key === "0" ? field.querySelector("input[data-na]") : options[Number(key) - 1];
    if (!input) return;
    input.checked = true;
    mark(at + 1);
  };
  const evidence = () => {
    const text = String(getSelection() || "").trim();
    const box = fieldsets()[at] && fieldsets()[at].querySelector("textarea");
    if (!box) return;
    box.closest("details").open = true;
    if (text) box.value = box.value ? `${box.value}\n${text}` : text;
    box.focus();
  };
  const undo = () => {
    const button = document.querySelector("[data-undo]");
    if (button && !button.disabled) button.click();
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("textarea, input:not([type=radio]), select");
    if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); submit("save"); return; }
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      n: () => submit("save"), s: () => submit("skip"), d: () => submit("decline"), u: undo,
      e: evidence, ArrowDown: () => mark(at + 1), ArrowUp: () => mark(at - 1),
      "?": () => { const keys = document.getElementById("keys"); keys.open = !keys.open; },
    };
    const action = /^[0-9]$/.test(event.key) ? () => choose(event.key) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  document.addEventListener("focusin", (event) => {
    const field = event.target.closest("fieldset[data-criterion]");
    if (field && form.contains(field)) mark(fieldsets().indexOf(field));
  });

  const missing = () => {
    const open = fieldsets().find((f) => !answered(f));
    const line = form.querySelector("[role=alert]");
    if (!open) { line.textContent = ""; return false; }
    mark(fieldsets().indexOf(open));
    line.textContent = `Choose a level of: ${open.querySelector("legend").textContent}`;
    return true;
  };
  for (const each of forms) {
    each.addEventListener("submit", (event) => {
      const action = event.submitter ? event.submitter.value : "save";
      if (action === "save" && missing()) { event.preventDefault(); return; }
      const seconds = (Date.now() - shown) / 1000;
      if (each.elements.seconds) each.elements.seconds.value = seconds.toFixed(1);
      if (offline) { event.preventDefault(); keep(each, action, seconds); }
    });
  }

  // -- the page that was mailed ------------------------------------------------------------------
  const saved = new Map();
  const order = [];
  let unsaved = false;
  let about = {};
  const status = document.getElementById("progress");
  const rater = document.getElementById("rater");
  const show = (next) => {
    for (const each of forms) each.closest("section").hidden = each !== next;
    if (next) open(next);
    const done = Array.from(saved.values()).filter((s) => s.action !== "skip").length;
    status.textContent = `${done} of ${forms.length} runs labelled`;
    document.getElementById("finished").hidden = Boolean(next);
    scrollTo(0, 0);
  };
  const pending = () => forms.find((f) => !saved.has(f))
    || forms.find((f) => saved.get(f).action === "skip");
  const keep = (each, action, seconds) => {
    saved.set(each, { action, seconds: Math.round(seconds * 10) / 10, at: Date.now() / 1000 });
    order.push(each);
    unsaved = true;
    show(pending());
  };
  const rows = () => forms.flatMap((each) => {
    const state = saved.get(each);
    return about.criteria.map((criterion) => {
      const input = each.querySelector(`fieldset[data-criterion="${criterion.key}"] input:checked`);
      const labelled = state && state.action === "save" && input;
      const item = about.items[each.dataset.item];
      const box = each.elements[`evidence.${criterion.key}`];
      return {
        run: item.run, case: item.case, system: item.system, criterion: criterion.id,
        label: labelled && input.value ? input.value : null,
        ...(labelled && !input.value ? { status: "not_applicable" } : {}),
        rater: labelled ? rater.value.trim() : null,
        ...(item.weight === null ? {} : { weight: item.weight, sample: about.sample }),
        ...(labelled ? { evidence: box.value, seconds: state.seconds } : {}),
      };
    });
  }).filter((row) => row.rater !== null || row.sample);
  const download = () => {
    if (!rater.value.trim()) { rater.focus(); status.textContent = "Enter your name first"; return; }
    const text = rows().map((row) => JSON.stringify(row)).join("\n") + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    link.download = `labels-${rater.value.trim().replace(/[^\w-]+/g, "-")}.jsonl`;
    link.click();
    URL.revokeObjectURL(link.href);
    unsaved = false;
  };

  if (offline) {
    about = JSON.parse(document.getElementById("about-labels").textContent);
    document.getElementById("download").addEventListener("click", download);
    document.querySelector("[data-undo]").addEventListener("click", () => {
      const last = order.pop();
      if (!last) return;
      saved.delete(last);
      show(last);
    });
    addEventListener("beforeunload", (event) => {
      if (unsaved) event.preventDefault();
    });
    show(pending());
  } else {
    open(form);
  }
})();
