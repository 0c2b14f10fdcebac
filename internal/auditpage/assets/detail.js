// One exchange, told as a story, with its rows in full below.
import { $, h, when } from "./dom.js";
import { get } from "./api.js";
import { decision, target } from "./rowview.js";

let asked = null;

export const isOpen = () => !$("detail").hidden;

export function close() {
  asked?.abort();
  $("detail").hidden = true;
  document.body.classList.remove("detailed");
}

// show loads and shows the exchange of a row.
export async function show(query, fail, filterBy) {
  asked?.abort();
  asked = new AbortController();
  const panel = $("detail");
  let found;
  try {
    found = await get("/api/event", query, asked.signal);
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
    return null;
  }
  const { line, parts, story } = found;
  panel.replaceChildren(
    h("button", { class: "close", type: "button", "aria-label": "Close (Escape)", onclick: () => { close(); $("list").focus(); } }, "×"),
    h("h2", { class: line.decision || "other" }, decision(line) || line.event, line.status ? ` ${line.status}` : ""),
    h("p", { class: "target" }, h("bdi", null, [line.method, target(line)].filter(Boolean).join(" "))),
    h("p", { class: "quiet" }, when(line.ts)),
    h("ol", { class: "story" }, story.filter((s) => s.name !== "when").map((s) => h("li", { class: s.name }, h("b", null, s.name), h("bdi", null, s.value)))),
    actions(line, filterBy),
    ...parts.map((part, i) => h("details", { open: i === parts.length - 1 },
      h("summary", null, `Row ${part.seq}`, h("small", null, part.event)),
      h("dl", { class: "columns" }, part.columns.flatMap((c) => [h("dt", null, c.name), h("dd", null, h("bdi", null, c.value))])))));
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add("detailed");
  return line;
}

function actions(line, filterBy) {
  const button = (text, query) => h("button", { type: "button", onclick: () => filterBy(query) }, text);
  return h("p", { class: "actions" },
    line.session ? button("This session", { session: line.session }) : null,
    line.host ? button("This host", { host: line.host.replace(/:\d+$/, "") }) : null,
    line.connector ? button("This connector", { connector: line.connector }) : null);
}
