// What waits for a person, and their decisions. What an agent wrote is only ever in an element of class agent, and what a
// service says in one of class service.
import { $, h } from "./dom.js";
import { get, post } from "./api.js";

const page = { shown: null, open: "", fail: null, said: null, listing: null };

export const can = () => page.said !== null;

// begin makes the page one that decides. fail shows an error, said what was done.
export function begin(fail, said) {
  page.fail = fail;
  page.said = said;
  $("tab-approvals").hidden = false;
  $("asking").addEventListener("click", () => $("tab-approvals").click());
  $("decide").addEventListener("submit", submit);
}

// announce tells how many questions wait.
export function announce(waiting) {
  const text = waiting === 1 ? "1 request waits for your approval" : `${waiting} requests wait for your approval`;
  $("asking").hidden = !waiting;
  if ($("asking").firstElementChild.textContent !== text) $("asking").firstElementChild.textContent = waiting ? text : "";
  document.title = `${waiting ? `(${waiting}) ` : ""}aileron audit`;
}

const cell = (text, i, all) => h("td", null, i === all.length - 1 ? h("bdi", { class: "agent" }, text) : text);

// list shows what waits, and the decisions in force.
export async function list() {
  page.listing?.abort();
  const { signal } = page.listing = new AbortController();
  let got;
  try {
    got = await get("/api/approvals", {}, signal);
  } catch (error) {
    if (error.name !== "AbortError") page.fail(error);
    return;
  }
  if (got.error) page.fail({ message: got.error, hint: got.hint });
  const at = document.activeElement?.closest?.("#asks tr")?.dataset.id;
  const rows = got.lines.map((q) => h("tr", { tabindex: "0", "data-id": q.id, class: q.state,
    "aria-label": `${q.cells[1]}, ${q.cells[4]}, ${q.cells[3]}`, "aria-current": q.id === page.open,
    onclick: () => open(q.id), onkeydown: (e) => { if (e.key === "Enter") { e.preventDefault(); open(q.id); } },
  }, q.cells.map(cell)));
  $("asks").replaceChildren(h("h2", null, "Approvals"), rows.length === 0 ? h("p", { class: "quiet" }, "Nothing waits for an approval, and no decision is in force.")
    : h("table", null, h("thead", null, h("tr", null, got.heads.map((t) => h("th", { scope: "col" }, t)))), h("tbody", null, rows)));
  if (at) (rows.find((r) => r.dataset.id === at) || rows[0] || $("view")).focus();
  else if (document.activeElement === document.body || document.activeElement === $("view")) focus();
  if (page.open) await show(page.open, false);
}

export const focus = () => ($("asks").querySelector("tbody tr") || $("view")).focus();

async function open(id) {
  page.open = id;
  if (await show(id, true)) $("question").focus();
}

// show shows a question. One that is open stays as it is until a person opens another: only its state changes.
async function show(id, fresh) {
  let q;
  try {
    q = await get("/api/approval", { id });
  } catch (error) {
    if (page.open !== id) return false;
    if (fresh) { page.fail(error); close(); } else if (page.shown?.pending) gone("it does not wait any more", false);
    return false;
  }
  if (page.open !== id) return false;
  if (!fresh && page.shown && !q.pending) return gone(state(q), q.revocable);
  if (!fresh && JSON.stringify(q) === JSON.stringify(page.shown)) return true;
  page.shown = q;
  $("question").replaceChildren(h("h2", null, q.what), h("p", { class: "actions", id: "acts" }),
    ...q.parts.map((p) => h("pre", { class: p.by, "aria-label": authors[p.by] }, p.text)));
  $("question").hidden = false;
  acts();
  return true;
}

const authors = { agent: "written by the agent", service: "what the service says", own: null };

const state = (q) => (q.parts[0]?.text.match(/^state: +(.*)$/m) || ["", ""])[1];

// gone tells what has become of the question that is open.
function gone(text, revocable) {
  page.shown.pending = false;
  page.shown.revocable = revocable;
  $("question").querySelector("h2").replaceChildren(page.shown.what, h("small", null, ` ${text}`));
  acts();
  return true;
}

function acts() {
  const q = page.shown, button = (text, key, act) => h("button", { type: "button", onclick: act }, text, h("kbd", null, key));
  $("acts").replaceChildren(...(q.pending ? [button("Approve", "a", approve), button("Deny", "n", deny)] : []),
    ...(q.revocable ? [button("Take back", "b", revoke)] : []));
}

export function close() {
  page.open = "";
  page.shown = null;
  $("question").hidden = true;
  $("question").replaceChildren();
  focus();
}

export const approve = () => page.shown?.pending && ask("Approve", true);
export const deny = () => page.shown?.pending && ask("Deny", false);
export const revoke = () => page.shown?.revocable && ask("Take back", false, true);

// ask has a decision confirmed. It is about the question that is open now, whatever comes meanwhile.
function ask(name, approving, revoking) {
  const q = page.shown, dialog = $("decide");
  const choice = (value, text, checked) => h("label", null, h("input", { type: "radio", name: "for", value, checked }), h("span", null, h("b", null, value), ` ${text}`));
  page.deciding = { id: q.id, shown: q.digest, approve: approving, revoke: !!revoking };
  dialog.querySelector("h2").textContent = `${name} ${q.what}?`;
  dialog.querySelector("fieldset").replaceChildren(...(revoking ? [] : [
    choice("once", "this request, or an equal one within ten minutes", true),
    ...(q.covers ? [choice("session", `all of ${q.covers}, in this session`)] : []),
    ...(q.covers && !(approving && q.any_path) ? [choice("always", `all of ${q.covers}, in every session`)] : [])]),
  ...(approving && q.unseen ? [h("label", { class: "bad" }, h("input", { type: "checkbox", name: "unseen", required: true }), h("span", null, `Although not all is shown: ${q.unseen}`))] : []));
  dialog.querySelector("[value=yes]").textContent = name;
  dialog.showModal();
  (dialog.querySelector("input") || dialog.querySelector("[value=yes]")).focus();
}

async function submit(e) {
  e.preventDefault();
  $("decide").close();
  if (e.submitter?.value !== "yes" || !page.deciding) return;
  const fields = new FormData(e.target), body = page.deciding;
  page.deciding = null;
  if (!body.revoke) Object.assign(body, { for: fields.get("for"), unseen: fields.has("unseen") });
  try {
    page.said((await post("/api/decide", body)).text);
  } catch (error) {
    page.fail(error);
  }
  await list();
  if (!$("question").hidden) $("question").focus();
}
