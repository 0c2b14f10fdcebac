"""Browsers without a window: a page, or its events, to standard output; of what
a script of the page fetches the size and the SHA-256. Chromium is spoken to through its pipe, Firefox through
Marionette; both run the same script in the page.
"""
import json, os, socket, subprocess, sys, tempfile, time

kind, transfer, url = sys.argv[1:]

# These run in the page, and what they leave in the window is asked for. A big
# body is measured there: the way out of a browser is slow.
EVENTS = """
window.got = []; window.ended = "";
const source = new EventSource(%s);
source.addEventListener("tick", (e) => window.got.push("id: " + e.lastEventId + "\\nevent: tick\\ndata: " + e.data + "\\n\\n"));
source.onerror = () => { source.close(); window.ended = "ok"; };
0"""
BIG = """
window.got = []; window.ended = "";
(async () => {
  const res = await fetch(%s), body = await res.arrayBuffer();
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  window.got.push(body.byteLength + " " + Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join(""));
  window.ended = res.status === 200 ? "ok" : "status " + res.status;
})().catch((e) => { window.ended = String(e); });
0"""
TAKE = "JSON.stringify({ ended: window.ended, got: window.got.splice(0) })"


class Chromium:
    """The sandbox of Chromium needs namespaces, which a box forbids: the box is the sandbox."""

    def __init__(self, home):
        ours, theirs = os.pipe(), os.pipe()  # it reads 3 and writes 4
        self.to, self.answers, self.last, self.session = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb"), 0, {}
        self.process = subprocess.Popen(["sh", "-c", f'exec chromium "$@" 3<&{ours[0]} 4>&{theirs[1]}', "-", "--headless", "--no-sandbox", "--disable-gpu",
                                         "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank"],
                                        pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL)
        os.close(ours[0]), os.close(theirs[1])
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def call(self, method, **params):
        self.last += 1
        self.to.write(json.dumps({"id": self.last, "method": method, "params": params, **self.session}).encode() + b"\0")
        while True:
            message = bytearray()
            while (byte := self.answers.read(1)) != b"\0":
                if not byte:
                    raise EOFError("Chromium has gone away")
                message += byte
            message = json.loads(message)
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]

    def go(self, to):
        if error := self.call("Page.navigate", url=to).get("errorText"):
            raise RuntimeError(error)

    def evaluate(self, text):
        return self.call("Runtime.evaluate", expression=text, returnByValue=True)["result"].get("value")


class Firefox:
    def __init__(self, home):
        with open(f"{home}/user.js", "w") as f:
            f.write('user_pref("devtools.jsonview.enabled", false);\n')
        self.process = subprocess.Popen(["firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", home], stdout=subprocess.DEVNULL)
        self.last, self.rest = 0, b""
        for _ in range(600):
            try:
                self.socket = socket.create_connection(("127.0.0.1", 2828))
                break
            except OSError:
                time.sleep(0.1)
        self.message()
        self.call("WebDriver:NewSession", capabilities={})

    def message(self):
        while b":" not in self.rest:
            self.read()
        size, self.rest = self.rest.split(b":", 1)
        while len(self.rest) < int(size):
            self.read()
        message, self.rest = self.rest[:int(size)], self.rest[int(size):]
        return json.loads(message)

    def read(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError("Firefox has gone away")
        self.rest += data

    def call(self, method, **params):
        self.last += 1
        command = json.dumps([0, self.last, method, params]).encode()
        self.socket.sendall(b"%d:%s" % (len(command), command))
        _, _, error, result = self.message()
        if error:
            raise RuntimeError(error)
        return result

    def go(self, to):
        self.call("WebDriver:Navigate", url=to)

    def evaluate(self, text):
        # Not in a sandbox of its own: window is the page's.
        return self.call("WebDriver:ExecuteScript", script=f"const r = (0, eval)({json.dumps(text)}); return r === undefined ? null : r;", args=[], sandbox=None)["value"]


def put(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


with tempfile.TemporaryDirectory(prefix="profile-", ignore_cleanup_errors=True) as home:
    browser = {"chromium": Chromium, "firefox": Firefox}[kind](home)
    try:
        if transfer == "small":  # what the page itself shows
            browser.go(url)
            while not (text := browser.evaluate('document.readyState === "complete" ? document.querySelector("pre").textContent : ""')):
                time.sleep(0.02)
            put(text.encode())
        else:  # what a script of the same site gets
            browser.go(url.rsplit("/", 1)[0] + "-page")
            while browser.evaluate('location.protocol + document.readyState') != "https:complete":
                time.sleep(0.02)
            browser.evaluate((EVENTS if transfer == "events" else BIG) % json.dumps(url))
            while True:
                now = json.loads(browser.evaluate(TAKE))
                put("".join(now["got"]).encode())
                if now["ended"]:
                    break
                time.sleep(0.01)
            if now["ended"] != "ok":
                sys.exit(now["ended"])
    finally:
        browser.process.kill()
        browser.process.wait()
