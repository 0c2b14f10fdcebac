// How a row of the list looks.
import { h, when, size, span, hue, number } from "./dom.js";

const names = ["when", "who", "what", "status", "method", "target", "operation", "binding", "bytes", "took"];
export const titles = ["Time", "Session", "Decision", "Status", "Method", "Target", "Operation", "Credential", "Bytes", "Time taken"];

export const cells = () => names.map((name) => h("span", { class: name, role: "gridcell" }));

export const head = () => names.map((name, i) => h("span", { class: name }, name === "took" ? "Took" : titles[i]));

// decision returns what became of a row's request.
export const decision = (row) => {
  if (!row.decision && row.event === "connector.proxy.started") return "started";
  return row.decision || "";
};

// short returns the part of an id that differs between sessions of one day.
export const short = (id) => (id && id.length > 6 ? id.slice(-5) : id || "");

const kind = (row) => row.decision === "waiting" ? "underway" : row.decision || (row.event.endsWith(".started") && row.method ? "intent" : "other");

// target returns what a row is about.
export const target = (row) => {
  if (!row.host) return row.subject || "";
  if (!row.path || row.path.startsWith("/")) return row.host + (row.path || "");
  return row.path === row.host || row.path.startsWith(row.host + ":") ? row.host : `${row.host} ${row.path}`;
};

export function fill(element, row) {
  const [at, who, what, status, method, to, operation, binding, bytes, took] = element.children;
  element.className = "row" + (element.classList.contains("odd") ? " odd" : "") + (row ? "" : " waiting");
  if (!row || row.missing) {
    for (const cell of element.children) cell.textContent = "";
    if (row) {
      element.classList.add("missing");
      to.textContent = `the log has no row ${row.seq}`;
    }
    return;
  }
  element.classList.add(kind(row));
  at.textContent = when(row.ts);
  who.replaceChildren(...(row.session
    ? [h("i", { class: "dot " + hue(row.session) }), row.agent || "session", h("small", null, short(row.session))] : []));
  what.textContent = decision(row);
  status.textContent = row.status || "";
  method.textContent = row.method || "";
  const name = row.host || row.event;
  to.replaceChildren(h("bdi", null, h("b", null, name), row.host ? target(row).slice(name.length) : " " + target(row)),
    ...(row.reason ? [h("em", null, row.reason)] : []),
    ...(row.requests ? [h("em", null, `${number(row.requests)} of them`)] : []),
    ...(row.redactions ? [h("em", { class: "note" }, `${row.redactions} redacted`)] : []));
  operation.textContent = row.operation || "";
  binding.textContent = row.binding || "";
  bytes.textContent = size(row.bytes);
  took.textContent = span(row.us);
}
