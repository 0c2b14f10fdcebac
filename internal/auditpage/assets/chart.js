// Requests over time, as a drawing of our own.
import { $, svg, h, when, number } from "./dom.js";

const kinds = ["sent", "passthrough", "refused"];
const height = 44;

let now = null; // what is drawn: counts, pick, and the bar that is chosen

const edge = (i) => new Date(new Date(now.counts.from).getTime() + i * now.counts.step * 1000).toISOString();
const sum = (bar) => bar[0] + bar[1] + bar[2];
const said = (i) => {
  const bar = now.counts.buckets[i];
  return `${when(edge(i), false)}: ${number(bar[0] + bar[1])} sent, ${number(bar[2])} refused`;
};

// keyboard lets a bar be chosen with the arrow keys, and Enter select its time.
export function keyboard() {
  $("chart").addEventListener("keydown", (e) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!now || (!by && e.key !== "Enter")) return;
    e.preventDefault();
    e.stopPropagation();
    const bars = now.counts.buckets;
    if (!by) return now.bar >= 0 && sum(bars[now.bar]) ? now.pick(edge(now.bar), edge(now.bar + 1)) : null;
    let next = now.bar < 0 ? (by > 0 ? 0 : bars.length - 1) : now.bar + by;
    while (bars[next] && !sum(bars[next])) next += by;
    if (bars[next]) { now.bar = next; show(); }
  });
  $("chart").addEventListener("blur", () => { if (now) { now.bar = -1; show(); } });
}

// draw shows counts; a bar that is chosen calls pick with its beginning and end.
export function draw(counts, pick) {
  const same = now && now.counts.from === counts.from && now.counts.step === counts.step;
  now = { counts, pick, bar: same ? now.bar : -1 };
  show();
}

function show() {
  const { counts, pick, bar } = now;
  const bars = counts.buckets, width = bars.length * 10;
  const most = Math.max(1, ...bars.map(sum));
  const totals = kinds.map((_, k) => bars.reduce((n, b) => n + b[k], 0));
  const groups = bars.map((b, i) => {
    let y = height;
    const parts = kinds.map((name, k) => {
      const size = b[k] === 0 ? 0 : Math.max(1.5, (b[k] / most) * (height - 2));
      y -= size;
      return size ? svg("rect", { class: name, x: i * 10 + 1, y, width: 8, height: size }) : null;
    });
    return svg("g", { class: i === bar ? "chosen" : "", onclick: () => sum(b) && pick(edge(i), edge(i + 1)) },
      svg("title", null, said(i)), svg("rect", { class: "hit", x: i * 10, y: 0, width: 10, height }), parts);
  });
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-labelledby": "chart-text" }, groups);
  const key = (name) => h("i", { class: `key ${name}` });
  const text = bar >= 0 ? h("span", null, said(bar), h("small", null, "Enter selects this time"))
    : bars.some(sum) ? h("span", null,
      key("sent"), h("b", null, number(totals[0] + totals[1])), " sent",
      totals[1] ? [key("passthrough"), h("b", null, number(totals[1])), " of them passed through"] : "",
      key("refused"), h("b", null, number(totals[2])), " refused",
      h("small", null, `${when(edge(0), false)} – ${when(edge(bars.length), false)}`,
        counts.done ? "" : `, counting: ${number(counts.rows)} rows so far`)) : h("span", null, "No requests");
  $("chart").replaceChildren(drawing, h("figcaption", { id: "chart-text", role: "status" }, text));
}
