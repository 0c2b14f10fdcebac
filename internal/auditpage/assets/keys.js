// What each key does. The list of help is made of the same table.
import { $, h } from "./dom.js";

const table = [
  ["↓ j", "next row", ["ArrowDown", "j"], "down", true],
  ["↑ k", "row before", ["ArrowUp", "k"], "up", true],
  ["Page Down, Page Up", "a page of rows", ["PageDown"], "pageDown", true],
  [null, null, ["PageUp"], "pageUp", true],
  ["Home g", "newest row", ["Home", "g"], "first", true],
  ["End G", "oldest row", ["End", "G"], "last", true],
  ["Enter", "open the exchange", ["Enter", "o"], "open", true],
  ["d", "go to the open exchange", ["d"], "detail", true],
  ["Esc", "close, or back to the list", ["Escape"], "close"],
  ["/", "find an id", ["/"], "find"],
  ["f", "filter by host", ["f"], "host"],
  ["m", "more filters", ["m"], "more"],
  ["r", "only what was refused, and all again", ["r"], "refused"],
  ["s", "only the session of the row", ["s"], "session", true],
  ["x", "clear the filter", ["x"], "clear"],
  ["w", "every row, or a line for each request", ["w"], "rows"],
  ["p", "stop or follow new rows", ["p"], "live"],
  ["t", "requests over time: arrow keys choose, Enter selects a time", ["t"], "chart"],
  ["v", "verify the record", ["v"], "verify"],
  ["e", "go to the formats in which what is selected can be saved", ["e"], "exports"],
  ["u", "count anew", ["u"], "refresh"],
  ["a", "approve the open request", ["a"], "approve", "approvals"],
  ["n", "deny the open request", ["n"], "deny", "approvals"],
  ["b", "take back the open decision", ["b"], "revoke", "approvals"],
  ["?", "these keys", ["?"], "help"],
];

const views = ["events", "sessions", "refusals", "use", "approvals"];

// explain lists the keys, those of approvals where they can be decided.
export function explain(list, deciding) {
  const entry = (name, text) => [h("dt", null, name), h("dd", null, text)];
  list.append(...entry(deciding ? "1 2 3 4 5" : "1 2 3 4", `events, sessions, refusals, what was used${deciding ? ", approvals" : ""}`),
    ...table.filter((t) => t[0] && (deciding || t[4] !== "approvals")).flatMap(([name, text]) => entry(name, text)));
}

const typing = (e) => e.matches("input, select, textarea");

// keys makes the keys work, everywhere but in fields, buttons and links that have a use for them.
export function keys(acts) {
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    const at = e.target;
    if (typing(at)) {
      if (e.key === "Escape") { at.blur(); acts.close(); }
      return;
    }
    if (at.matches("button, a, summary") && (e.key === "Enter" || e.key === " ")) return;
    if (at.role === "tab" && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
      const count = acts.decides() ? 5 : 4, next = (views.indexOf(at.dataset.view) + (e.key === "ArrowRight" ? 1 : count - 1)) % count;
      acts.view(views[next]);
      document.querySelector(`[data-view=${views[next]}]`).focus();
      return;
    }
    if (/^[1-4]$/.test(e.key) || (e.key === "5" && acts.decides())) { e.preventDefault(); acts.view(views[e.key - 1]); return; }
    if (!acts.inEvents() && !at.closest("#question") && (e.key === "ArrowDown" || e.key === "ArrowUp" || e.key === "j" || e.key === "k")) {
      moveInTable(e, e.key === "ArrowDown" || e.key === "j" ? 1 : -1);
      return;
    }
    const entry = table.find((t) => t[2].includes(e.key));
    if (!entry || (entry[4] === "approvals" ? !acts.inApprovals() : entry[4] && (!acts.inEvents() || (at.closest("#detail") && e.key !== "Escape")))) return;
    e.preventDefault();
    acts[entry[3]]();
  });
}

function moveInTable(e, by) {
  const rows = [...document.querySelectorAll("#panel:not([hidden]) tbody tr, #approvals:not([hidden]) tbody tr")], at = rows.indexOf(document.activeElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  if (next) { e.preventDefault(); next.focus(); }
}
