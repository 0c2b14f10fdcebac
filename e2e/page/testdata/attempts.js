// What a page of another origin tries, to read something of the origin "at". Each resolves with what it got.
const attempts = (at) => {
  const text = (response) => response.text();
  const loaded = (tag, path) => new Promise((got, refused) => {
    const element = document.createElement(tag);
    element.src = at + path;
    element.onload = () => got("loaded");
    element.onerror = refused;
    document.body.append(element);
  });
  const credentials = "include";
  return {
    "fetch": () => fetch(at + "/api/rows").then(text),
    "fetch with cookies": () => fetch(at + "/api/rows", { credentials }).then(text),
    "opaque fetch": () => fetch(at + "/api/rows", { credentials, mode: "no-cors" }).then(text),
    "fetch with a key": () => fetch(at + "/api/rows", { credentials, headers: { "Aileron-Page-Key": "x" } }).then(text),
    "link": () => fetch(at + "/session", { method: "POST", body: "x" }).then(text),
    "event stream": () => new Promise((got, refused) => {
      const stream = new EventSource(at + "/api/live", { withCredentials: true });
      stream.onmessage = () => got("a message");
      stream.onerror = refused;
    }),
    "web socket": () => new Promise((got, refused) => {
      const socket = new WebSocket(at.replace("http", "ws") + "/api/live");
      socket.onopen = () => got("open");
      socket.onerror = refused;
    }),
    "script": () => loaded("script", "/app.js"),
    "picture": () => loaded("img", "/icon.svg"),
    "frame": () => new Promise((got) => {
      const frame = document.createElement("iframe");
      frame.src = at + "/";
      frame.onload = () => {
        let inside = null;
        try { inside = frame.contentDocument; } catch { /* of another origin */ }
        got(inside ? inside.body.innerText : "");
      };
      document.body.append(frame);
    }),
  };
};

// attack tries all, and resolves with the names of those that got something.
window.attack = async (at) => {
  const successes = [];
  for (const [name, attempt] of Object.entries(attempts(at))) {
    const got = await attempt().catch(() => "");
    if (got !== "") successes.push(`${name}: ${got}`);
  }
  return successes;
};

// submit sends a form, which needs no preflight and shows the answer where the attacker cannot read it.
window.submit = (at) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = at + "/session";
  document.body.append(form);
  form.submit();
};

// decide tries to have something decided, and resolves with the names of those that got an answer.
window.decide = async (at, body) => {
  const json = { "Content-Type": "application/json", "Aileron-Page-Key": "x" };
  const sent = (options, path = "/api/decide") => fetch(at + path, { method: "POST", credentials: "include", body, ...options })
    .then(async (response) => (response.ok ? response.text() : ""));
  const successes = [];
  for (const [name, attempt] of Object.entries({
    "simple": () => sent({}),
    "opaque": () => sent({ mode: "no-cors" }),
    "with JSON": () => sent({ headers: json }),
    "with JSON, without cookies": () => sent({ headers: json, credentials: "omit" }),
    "GET": () => fetch(`${at}/api/decide?${new URLSearchParams(JSON.parse(body))}`, { credentials: "include" }).then((r) => (r.ok ? r.text() : "")),
    "what waits": () => fetch(at + "/api/approvals", { credentials: "include" }).then((r) => (r.ok ? r.text() : "")),
    "beacon": async () => { navigator.sendBeacon(at + "/api/decide", new Blob([body], { type: "text/plain" })); return ""; },
  })) {
    const got = await attempt().catch(() => "");
    if (got !== "") successes.push(`${name}: ${got}`);
  }
  return successes;
};

// submitDecision sends a form whose body is a decision.
window.submitDecision = (at, body) => {
  const form = document.createElement("form"), field = document.createElement("input");
  Object.assign(form, { method: "post", action: at + "/api/decide", enctype: "text/plain" });
  Object.assign(field, { type: "hidden", name: body.slice(0, -1) + ',"x":"', value: '"}' });
  form.append(field);
  document.body.append(form);
  form.submit();
};
