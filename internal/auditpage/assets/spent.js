// What requests have used, and what that costs, by model, agent and session.
import { h, hue, number, size } from "./dom.js";
import { lines } from "./api.js";
import { opening, table } from "./panels.js";

// section is shown below the use of credentials.
export const section = h("div");

const titles = { model: "Model", agent: "Agent", session: "Session" };
const none = { model: "no model", agent: "no agent", session: "no session" };

const word = (meter) => meter.replaceAll("_", " ");

const name = (by, use) => by === "session"
  ? h("span", { class: "who" }, h("i", { class: "dot " + hue(use.name) }), use.agent || "", h("small", null, use.name))
  : h("bdi", { class: use.name ? "" : "quiet" }, use.name || none[by]);

function draw(used, open) {
  const costs = used.groups.some((g) => g.uses.some((u) => u.cost));
  const group = ({ by, uses, more }) => [
    h("h2", null, `Used by ${by}`),
    table([titles[by], "Requests", "Bytes", ...used.meters.map(word), ...(costs ? [`Cost ${used.currency || ""}`.trim()] : [])],
      uses.map((u) => opening(`${by} ${u.name || none[by]}`, by !== "model" && u.name ? () => open(by, u.name) : null, [
        name(by, u), number(u.requests), size(u.bytes) || "0 B", ...used.meters.map((m) => number(u.meters[m] || 0)),
        ...(costs ? [u.cost || "-"] : [])])),
      ""),
    more ? h("p", { class: "quiet" }, `and ${number(more)} more: aileron audit used --by ${by}`) : ""];
  section.replaceChildren(...used.groups.filter((g) => g.uses.length).flatMap(group),
    used.done ? "" : h("p", { class: "quiet" }, `Adding up: ${number(used.rows)} rows so far`));
}

// load asks what the requests that query selects have used. keep keeps the focus while the section changes.
export async function load(query, open, fail, keep, signal) {
  section.replaceChildren(h("p", { class: "quiet" }, "Adding up"));
  try {
    await lines("/api/used", query, signal, (used) => {
      if (signal.aborted) return;
      if (used.error) fail({ message: used.error, hint: used.hint });
      keep(() => draw(used, open));
    });
  } catch (error) {
    if (error.name === "AbortError") return;
    section.replaceChildren();
    fail(error);
  }
}
