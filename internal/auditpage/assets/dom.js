// Elements are made of text only: nothing that a row holds is ever parsed as HTML.

export const $ = (id) => document.getElementById(id);

const build = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((c) => c != null && c !== ""));
  return node;
};

// h returns an element.
export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);

// svg returns an element of a drawing.
export const svg = (tag, attributes, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const two = (n) => String(n).padStart(2, "0");

// when returns a time of this browser's zone, with its date.
export const when = (text, fraction = true) => {
  const t = new Date(text);
  if (Number.isNaN(t.getTime())) return text;
  const day = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
  const time = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  return `${day} ${time}${fraction ? "." + String(t.getMilliseconds()).padStart(3, "0") : ""}`;
};

// zone returns the offset of this browser's zone, such as UTC+2.
export const zone = () => {
  const minutes = -new Date().getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const part = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${Math.floor(part / 60)}${part % 60 ? ":" + two(part % 60) : ""}`;
};

const digits = new Intl.NumberFormat("en");

export const number = (n) => digits.format(n).replaceAll(",", "\u202f");

// size returns a number of bytes for a person.
export const size = (n) => {
  if (!n) return "";
  if (n < 1000) return `${n} B`;
  for (const unit of ["kB", "MB", "GB", "TB"]) {
    n /= 1000;
    if (n < 999.5) return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`;
  }
  return `${Math.round(n)} TB`;
};

// span returns a duration in microseconds for a person.
export const span = (us) => {
  if (!us) return "";
  if (us < 10_000_000) return `${us < 10_000 ? (us / 1000).toFixed(1) : Math.round(us / 1000)} ms`;
  return `${Math.round(us / 1_000_000)} s`;
};

// hue returns one of eight colours for a session.
export const hue = (id) => {
  let sum = 0;
  for (const c of id || "") sum = (sum * 31 + c.codePointAt(0)) >>> 0;
  return "c" + (sum % 8);
};
