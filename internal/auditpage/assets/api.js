// Requests to the server. Each has a cookie, which the browser keeps, and a key, which only this page has.

const storage = "aileron-page-key";

// Problem is an error with a line for a person.
export class Problem extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint || "";
  }
}

// enter exchanges the token of the link for the cookie and the key.
export async function enter() {
  const token = location.hash.slice(1);
  if (token && /^[A-Z2-7]+$/.test(token)) {
    history.replaceState(null, "", "/"); // the history of the browser does not keep it
    const response = await fetch("/session", { method: "POST", body: token });
    if (response.ok) {
      sessionStorage.setItem(storage, (await response.json()).key);
      return;
    }
    if (!sessionStorage.getItem(storage)) throw new Problem((await response.text()).trim());
  }
  if (!sessionStorage.getItem(storage)) {
    throw new Problem("This tab was not opened with a link of aileron audit serve.",
      "Open the link that it printed; each link opens one tab, once.");
  }
}

async function request(path, query, signal, body) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== "" && value != null) parameters.set(name, value);
  }
  let response;
  try {
    response = await fetch(`${path}?${parameters}`, {
      signal, method: body ? "POST" : "GET", body: body && JSON.stringify(body),
      headers: { "Aileron-Page-Key": sessionStorage.getItem(storage) || "", ...(body && { "Content-Type": "application/json" }) },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer.", "Start aileron audit serve again, and open its new link.");
  }
  if (response.ok) return response;
  const text = await response.text();
  try {
    const { error, hint } = JSON.parse(text);
    throw new Problem(error, hint);
  } catch (error) {
    throw error instanceof Problem ? error : new Problem(text.trim());
  }
}

// get returns a value.
export const get = async (path, query, signal) => (await request(path, query, signal)).json();

// post sends a value, and returns one.
export const post = async (path, body) => (await request(path, {}, null, body)).json();

// lines calls f for each value of a stream.
export async function lines(path, query, signal, f) {
  const response = await request(path, query, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem("The server does not answer.", "Start aileron audit serve again, and open its new link.");
    }
    if (part.done) return;
    const all = (rest + part.value).split("\n");
    rest = all.pop();
    for (const line of all) f(JSON.parse(line));
  }
}
