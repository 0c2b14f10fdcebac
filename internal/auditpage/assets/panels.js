// The views beside the list: sessions, refusals by reason, credentials.
import { $, h, when, number, hue } from "./dom.js";
import { get } from "./api.js";

export const table = (titles, rows, empty) => rows.length === 0 ? h("p", { class: "quiet" }, empty) : h("table", null,
  h("thead", null, h("tr", null, titles.map((t) => h("th", { scope: "col" }, t)))),
  h("tbody", null, rows));

// opening returns a row that is opened with Enter or a click; open is null for one that is only read.
export const opening = (label, open, cells) => h("tr", {
  tabindex: "0", "aria-label": label, ...(open && { onclick: open }), class: open ? null : "plain",
  onkeydown: (e) => { if (e.key === "Enter" && open) { e.preventDefault(); open(); } },
}, cells.map((c) => h("td", null, c)));

const progress = (counts) => counts.done ? null :
  h("p", { class: "quiet" }, `Counting: ${number(counts.rows)} rows so far`);

const listed = (names) => names.map((n) => h("span", { class: "tally" }, h("bdi", null, n.name), h("b", null, number(n.n))));

// grouped shows the groups of counts, and what is below them.
export function grouped(counts, what, open, below) {
  const refusals = what === "refusals";
  const titles = refusals ? ["Reason", "Refused", "Sessions", "Last", "Hosts"]
    : ["Credential", "Sent", "Refused", "Sessions", "Agents", "Last", "Operations", "Refused because"];
  const rows = (refusals ? counts.reasons : counts.bindings).map((g) => opening(g.name || "no credential", () => open(g), refusals
    ? [h("bdi", { class: "refused" }, g.name), number(g.refused), number(g.sessions), when(g.last, false), listed(g.names)]
    : [h("bdi", { class: g.name ? "" : "quiet" }, g.name || "no credential"), number(g.sent),
      h("span", { class: g.refused ? "bad" : "quiet" }, number(g.refused)), number(g.sessions), g.agents.join(", "),
      when(g.last, false), listed(g.names), listed(g.reasons)]));
  keepFocus(() => $("panel").replaceChildren(
    h("h2", null, refusals ? "Refusals by reason" : "Use of credentials"),
    table(titles, rows, counts.done ? (refusals ? "Nothing was refused." : "No request was made.") : ""),
    progress(counts) || "", below));
}

// counting stands for groups of which nothing is known yet.
export const counting = () => keepFocus(() => $("panel").replaceChildren(h("p", { class: "quiet" }, "Counting")));

// keepFocus keeps the focus in the same row while rows are made anew, and moves it to the first one that is there.
export function keepFocus(change) {
  const rows = () => [...$("panel").querySelectorAll("tbody tr")];
  const label = document.activeElement?.getAttribute?.("aria-label");
  const inside = rows().includes(document.activeElement), waiting = document.activeElement === $("view");
  change();
  if (waiting) rows()[0]?.focus();
  else if (inside) (rows().find((r) => r.getAttribute("aria-label") === label) || rows()[0] || $("view")).focus();
}

// sessions shows the newest sessions, unless signal ends it, and reports whether it did. Older ones are loaded when
// they are asked for.
export async function sessions(query, open, fail, signal) {
  const rows = [];
  const more = async (through) => {
    let list;
    try {
      ({ sessions: list } = await get("/api/started", { ...query, through }, signal));
      signal.throwIfAborted();
    } catch (error) {
      if (error.name !== "AbortError") fail(error);
      return false;
    }
    rows.push(...list.map((s) => opening(`${s.agent || "session"} ${s.id}`, () => open(s), [
      h("span", { class: "who" }, h("i", { class: "dot " + hue(s.id) }), s.agent || "", h("small", null, s.id)),
      s.mode || "", s.sealed ? "sealed" : "by convention", when(s.started, false),
      s.ended ? when(s.ended, false) : "no end so far",
      [s.reason, s.exit == null ? "" : `exit ${s.exit}`, s.cause].filter(Boolean).join(", ")])));
    const oldest = list.at(-1)?.seq;
    $("panel").replaceChildren(h("h2", null, "Sessions"),
      table(["Session", "Mode", "Mediation", "Started", "Ended", "How"], rows, "No session has started."),
      list.length === 100 ? h("button", { type: "button", onclick: () => more(oldest - 1) }, "Older sessions") : "");
    return true;
  };
  return more();
}
