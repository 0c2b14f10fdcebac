// The page: its filter, its views and its keys.
import { $, h, number, zone } from "./dom.js";
import { enter, get, lines } from "./api.js";
import { List } from "./list.js";
import { cells, fill, head } from "./rowview.js";
import * as detail from "./detail.js";
import * as chart from "./chart.js";
import * as panels from "./panels.js";
import * as spent from "./spent.js";
import * as approvals from "./approvals.js";
import { keys, explain } from "./keys.js";

const state = { query: {}, rows: false, view: "events", live: true, now: { newest: 0, oldest: 0, epoch: 0 }, known: 0, stop: null, counts: null };
const form = $("filter");
const filtered = () => Object.keys(state.query).length > 0;
const whole = () => state.rows && !filtered(); // each number has a row in the list
const query = () => (state.rows ? { ...state.query, rows: 1 } : state.query);

// say shows one line; "" removes it.
function say(text, hint) {
  $("message").hidden = !text;
  $("message").replaceChildren(text || "", hint ? h("small", null, hint) : "");
}
const fail = (error) => say(error.message, error.hint);

// done shows what was done.
function done(text) {
  say("");
  $("record").hidden = false;
  $("record").className = "ok";
  $("record").replaceChildren(h("b", null, text));
}

const list = new List($("list"), {
  cells, fill, failed: fail,
  load: async (chunk, signal) =>
    (await get("/api/rows", { ...query(), after: chunk.lo - 1, through: chunk.hi }, signal)).rows,
  bar: (width) => { $("head").style.paddingRight = `${14 + width}px`; },
  open: (row) => row && !row.missing && openRow({ seq: row.seq }),
  changed: () => {
    const { total } = list.chunks;
    $("status").textContent = total === 0 && state.now.message ? "" : total === 0 && !state.searching ? (filtered() ? "No row matches." : "No rows yet.")
      : `${list.current >= 0 ? number(list.current + 1) + " of " : ""}${number(total)}${state.searching ? " so far" : ""} ${state.rows ? "rows" : "events"}, newest first · ${zone()}`;
    if (detail.isOpen() && list.current >= 0 && list.row(list.current)?.seq !== state.shown) {
      clearTimeout(state.later);
      state.later = setTimeout(() => list.openCurrent(), 120);
    }
  },
});

async function openRow(query) {
  const line = await detail.show(query, fail, filterBy);
  if (line) state.shown = line.seq;
  return line;
}

// readForm returns what the filter selects.
function readForm() {
  const query = {};
  for (const field of form.elements) {
    if (field.name && field.name !== "id" && field.value.trim()) query[field.name] = field.value.trim();
  }
  return query;
}

// filterBy replaces the filter.
function filterBy(query) {
  for (const field of form.elements) if (field.name) field.value = query[field.name] || "";
  showRest([...$("rest").querySelectorAll("[name]")].some((field) => field.value));
  if (state.view !== "events") view("events");
  search();
  $("list").focus();
}

// search shows the rows that the filter selects, from the beginning.
function search() {
  state.query = readForm();
  $("clear").disabled = !filtered();
  state.stop?.abort();
  state.stop = new AbortController();
  state.known = state.now.newest;
  state.searching = false;
  say(state.now.message, state.now.hint);
  list.reset(whole());
  if (!whole()) find(state.stop.signal);
  else if (state.known > 0) list.chunks.older(list.chunks.range(state.known, state.now.oldest));
  list.grew(0);
  underWay();
  state.counts = null; // they are of another filter
  if (state.view === "refusals" || state.view === "use") panels.counting();
  if (state.view === "use") addUp();
  count();
}

// find asks where the selected rows are.
async function find(signal) {
  state.searching = true;
  const through = state.known;
  try {
    await lines("/api/chunks", { ...query(), through }, signal, (found) => {
      if (found.error) fail({ message: found.error, hint: found.hint });
      list.chunks.older(found.chunks);
      list.grew(0);
    });
  } catch (error) {
    if (error.name === "AbortError") return;
    fail(error);
  }
  state.searching = false;
  list.changed();
}

// underWay shows the requests that have no outcome, before all others: their rows are not in the list.
async function underWay() {
  const { signal } = state.stop;
  try {
    const { rows } = state.rows ? { rows: [] } : await get("/api/waiting", state.query, signal);
    if (!signal.aborted) list.begins(rows);
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  }
}

// advance adds the rows that were written since the last time.
async function advance() {
  if (state.adding || !state.live || !state.stop || state.now.newest <= state.known) return;
  state.adding = true;
  const { signal } = state.stop, after = state.known, through = state.now.newest;
  try {
    const { rows } = await get("/api/rows", { ...query(), after, through }, signal);
    let chunks = [[through, after + 1, rows.length]], known = rows;
    if (rows.length === 128) {
      known = null;
      chunks = [];
      if (!whole()) await lines("/api/chunks", { ...query(), after, through }, signal, (f) => chunks.push(...f.chunks));
      else chunks = list.chunks.range(through, after + 1);
    } else if (whole()) {
      chunks[0][2] = through - after;
      if (rows.length < through - after) known = null;
    }
    if (!signal.aborted) {
      state.known = through;
      state.soon ||= setTimeout(() => { state.soon = 0; underWay(); }, 500);
      if (chunks.some((c) => c[2] > 0)) list.grew(list.chunks.newer(chunks.filter((c) => c[2] > 0), known));
    }
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  }
  state.adding = false;
  if (state.now.newest > state.known) requestAnimationFrame(advance);
  else if (state.quick && Date.now() - state.counted > 2000) count();
}

// count shows how many requests there were when, why, and with what.
async function count() {
  state.counting?.abort();
  const mine = state.counting = new AbortController();
  const begun = Date.now();
  try {
    await lines("/api/counts", state.query, mine.signal, (counts) => {
      if (counts.error) return fail({ message: counts.error, hint: counts.hint }); // what was counted before is shown on
      state.counts = counts;
      chart.draw(counts, (since, until) => filterBy({ ...state.query, since, until }));
      showCounts();
    });
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
    return;
  }
  state.counted = Date.now();
  state.quick = state.counted - begun < 400;
}

// addUp shows what the selected requests have used.
function addUp() {
  state.summing?.abort();
  state.summing = new AbortController();
  spent.load(state.query, (by, name) => filterBy({ ...state.query, [by]: name }), fail, panels.keepFocus, state.summing.signal);
}

// offer lists the names that a field of the filter can have.
const offer = (id, names) => $(id).replaceChildren(...[...new Set(names)].filter(Boolean).map((n) => h("option", { value: n })));

function showCounts() {
  if (state.counts && !filtered()) {
    const { bindings, reasons } = state.counts;
    offer("bindings", bindings.map((b) => b.name));
    offer("reasons", reasons.map((r) => r.name));
    offer("agents", bindings.flatMap((b) => b.agents));
    offer("operations", bindings.flatMap((b) => b.names.map((n) => n.name)));
  }
  if (!state.counts || (state.view !== "refusals" && state.view !== "use")) return;
  panels.grouped(state.counts, state.view, (g) =>
    filterBy(state.view === "refusals" ? { ...state.query, decision: "rejected", reason: g.name } : { ...state.query, binding: g.name }),
    state.view === "use" ? spent.section : "");
}

// view shows one of the views.
function view(name) {
  state.view = name;
  state.asked?.abort(); // an answer for the view that is left must not change this one
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const on = tab.dataset.view === name;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
  }
  $("view").setAttribute("aria-labelledby", `tab-${name}`);
  $("events").hidden = name !== "events";
  $("panel").hidden = name === "events" || name === "approvals";
  $("approvals").hidden = name !== "approvals";
  if (name === "events") list.measure();
  if (name === "approvals") approvals.list();
  if (name === "use") addUp(); else state.summing?.abort();
  if (name === "sessions") {
    const { agent, session, since, until } = state.query;
    state.asked = new AbortController();
    panels.sessions({ agent, session, since, until }, (s) => filterBy({ session: s.id }), fail, state.asked.signal)
      .then((shown) => shown && focusPanel());
  }
  if (state.counts) showCounts();
  else if (name === "refusals" || name === "use") panels.counting();
  focusPanel();
}

function focusPanel() {
  if (state.view === "events") $("list").focus();
  else if (state.view === "approvals") approvals.focus();
  else ($("panel").querySelector("tbody tr") || $("view")).focus();
}

function showRest(on) {
  $("rest").hidden = !on;
  $("more").setAttribute("aria-expanded", on);
}

function live(on) {
  state.live = on;
  $("live").setAttribute("aria-pressed", on);
  $("live").lastElementChild.textContent = on ? "Live" : "Paused";
  advance();
}

// save asks for a file of the selected rows.
async function save(format) {
  try {
    const { path } = await get("/api/ticket", { ...state.query, format });
    h("a", { href: path, download: "" }).click();
  } catch (error) {
    fail(error);
  }
}

// lookUp shows the event, or the session, whose id begins as it was typed.
async function lookUp() {
  const id = form.elements.id.value.trim();
  if (!id) return;
  try {
    const found = await get("/api/find", { id });
    if (found.session) return filterBy({ session: found.session });
    if (await openRow({ seq: found.seq })) say("");
  } catch (error) {
    fail(error);
  }
}

// verify checks the whole log, and shows what came of it.
async function verify() {
  const shown = $("record");
  shown.hidden = false;
  shown.className = "";
  shown.textContent = "Verifying: all rows are read";
  try {
    const { ok, text, hint } = await get("/api/verify");
    shown.className = ok ? "ok" : "broken";
    shown.replaceChildren(h("b", null, ok ? "The record verifies. " : "The record does NOT verify. "), text, h("small", null, hint));
  } catch (error) {
    shown.hidden = true;
    fail(error);
  }
}

async function follow() {
  for (;;) {
    try {
      await lines("/api/live", {}, null, (now) => {
        const before = state.now;
        state.now = now;
        if (!state.stop || now.epoch !== before.epoch || (before.newest === 0 && now.newest > 0)) search();
        else if (now.message !== before.message) say(now.message, now.hint);
        document.body.classList.remove("away");
        if (approvals.can() && now.asked !== before.asked) {
          approvals.announce(now.waiting || 0);
          if (state.view === "approvals") approvals.list();
        }
        advance();
      });
    } catch (error) {
      document.body.classList.add("away");
      fail(error);
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

const acts = {
  down: () => list.move(1), up: () => list.move(-1), pageDown: () => list.move(list.visible - 1),
  pageUp: () => list.move(1 - list.visible), first: () => list.select(0), last: () => list.select(list.chunks.total - 1),
  open: () => list.openCurrent(),
  close: () => { $("record").hidden = true; if (state.view === "approvals") return approvals.close(); if (detail.isOpen()) detail.close(); $("list").focus(); },
  find: () => form.elements.id.focus(), host: () => form.elements.host.focus(),
  more: () => { showRest($("rest").hidden); if (!$("rest").hidden) form.elements.agent.focus(); },
  clear: () => filterBy({}), live: () => live(!state.live), refresh: () => { count(); if (state.view === "use") addUp(); },
  rows: () => { state.rows = !state.rows; $("rows").setAttribute("aria-pressed", state.rows); search(); },
  refused: () => filterBy({ ...state.query, decision: state.query.decision === "rejected" ? "" : "rejected" }),
  session: () => { const row = list.row(list.current); if (row?.session) filterBy({ session: row.session }); },
  chart: () => { view("events"); $("chart").focus(); },
  exports: () => $("exports").querySelector("button")?.focus(),
  detail: () => { if (detail.isOpen()) $("detail").focus(); },
  help: () => $("help").showModal(), save, verify,
  approve: approvals.approve, deny: approvals.deny, revoke: approvals.revoke,
  view, inEvents: () => state.view === "events", inApprovals: () => state.view === "approvals", decides: approvals.can,
};

async function begin() {
  $("head").append(...head());
  try {
    await enter();
    const about = await get("/api/state");
    if (about.decides) approvals.begin(fail, done);
    for (const name of about.decisions) form.elements.decision.append(h("option", null, name));
    for (const name of about.events) form.elements.event.append(h("option", null, name));
    $("exports").append(...about.exports.map((name) =>
      h("button", { type: "button", onclick: () => save(name), title: `Save the selected rows as ${name}` }, name.toUpperCase())), h("kbd", null, "e"));
  } catch (error) {
    document.body.classList.add("away");
    return fail(error);
  }
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    if (form.elements.id.value.trim()) return lookUp();
    search();
    $("list").focus();
  });
  form.addEventListener("change", (e) => { if (e.target.name && e.target.name !== "id") search(); });
  $("more").addEventListener("click", acts.more);
  $("clear").addEventListener("click", acts.clear);
  $("live").addEventListener("click", acts.live);
  $("rows").addEventListener("click", acts.rows);
  $("verify").addEventListener("click", verify);
  $("help-open").addEventListener("click", acts.help);
  for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => view(tab.dataset.view));
  explain($("help").querySelector("dl"), approvals.can());
  chart.keyboard();
  keys(acts);
  follow();
  view("events");
}

begin();
