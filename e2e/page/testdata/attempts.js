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
