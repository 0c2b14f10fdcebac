"""Runs the clients of an image in the box, with the proxy variables and without,
and prints one JSON line for each cell. Arguments: the image, which share of its
clients, as in 0/2, and the clients to run (none: all of that image). The other
shares are other boxes': what a client connects to is seen by box.

A cell is a real command whose standard output, or whose file, is what came
through. What came is measured here and judged on the host.
"""
import glob, hashlib, json, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
API = "https://api.github.com"
PUSH = 100_000_000


def js(name):
    return f"{HERE}/clients/{name}"


def get(*argv, transfers=("small", "big", "events")):
    """A client that writes what it gets to standard output."""
    return {t: list(argv) + ["{url}"] for t in transfers}


STREAM = ("small", "events")  # for variants of a client whose 50 MB are run


def shell(script, result):
    """A client that writes a file: what a shell runs in the cell's own directory, and the file."""
    return lambda mode, work: (["sh", "-euc", script.replace("{mode}", mode)], lambda: glob.glob(f"{work}/{result}")[0])


def git_clone(size):
    return shell(f"git clone -q --single-branch https://github.com/acme/{size}.git out", "out/blob.bin")


git_fetch = shell("git clone -q --single-branch https://github.com/acme/small.git out; cd out; rm blob.bin; "
                  "git fetch -q origin later; git checkout -q FETCH_HEAD -- later.bin", "out/later.bin")


def git_push(mode, work):
    with open(f"{work}/blob.bin", "wb") as f:
        f.write(random.Random(mode).randbytes(PUSH))
    return ["sh", "-euc", f"""
        git init -q; git config user.name matrix; git config user.email matrix@example.com
        git config core.compression 0; git config core.bigFileThreshold 1m
        git add blob.bin; git commit -qm one; git push -q https://github.com/acme/push.git HEAD:refs/heads/{mode}"""], f"{work}/blob.bin"


def npm(program, size):
    return shell(f"{program} install --no-audit --no-fund --no-update-notifier --loglevel=error matrix-{size}", f"node_modules/matrix-{size}/blob.bin")


def bun_add(size):
    return shell(f"echo '{{}}' >package.json; bun add --silent --no-cache matrix-{size}", f"node_modules/matrix-{size}/blob.bin")


def pip(program, size):
    return shell(f"{program} -q --no-deps --target out matrix-{size}", f"out/matrix_{size}/blob.bin")


def go_mod(size):
    """The checksum database is another service, with the names of all modules in it: not for these."""
    return shell(f"export GOPATH=$PWD/go GOFLAGS=-modcacherw GONOSUMDB='*'; go mod download matrix.example/{size}@v1.0.0",
                 f"go/pkg/mod/matrix.example/{size}@v1.0.0/blob.bin")


def cargo(size):
    return shell(f"""export CARGO_HOME=$PWD/cargo; mkdir -p p/src; cd p; : >src/lib.rs
        printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nmatrix-{size} = "1"\n' >Cargo.toml
        cargo fetch -q""", f"cargo/registry/src/*/matrix-{size}-1.0.0/blob.bin")


def apt(size):
    return shell(f"""mkdir -p state/lists/partial cache/archives/partial; : >status
        archive=$(grep -rhoE 'https?://[^/ ]+' /etc/apt/sources.list* | head -n 1)
        echo "deb [trusted=yes] $archive/debian matrix main" >sources.list
        apt="apt-get -qq -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State=$PWD/state -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache"
        $apt update; $apt download matrix-{size}""", f"matrix-{size}_1.0_all.deb")


def aws(size):
    return shell(f"""printf '[default]\\nregion = us-east-1\\ns3 =\\n  addressing_style = path\\n' >config
        AWS_CONFIG_FILE=$PWD/config aws s3api get-object --no-sign-request --endpoint-url https://s3.amazonaws.com --bucket matrix --key {size} out >said""", "out")


def nss(mode, work):
    """NSS's own test client. It knows no proxy, and prints the answer with its head."""
    return ["bash", "-euc", f"""
        certutil -d sql:. -N --empty-password; certutil -d sql:. -A -n aileron -t C,, -i /etc/aileron/proxy/ca.pem
        printf 'GET /repos/{mode}/nss HTTP/1.1\\r\\nHost: api.github.com\\r\\nConnection: close\\r\\n\\r\\n' >request
        timeout 300 tstclnt -h api.github.com -p 443 -d sql:. -A request >answer
        grep -ao '{{.*}}' answer | tr -d '\\n' >body"""], f"{work}/body"


CLIENTS = {
    "curl": get("curl", "-sSfN"),
    "wget": get("wget", "-qO-"),
    "busybox-wget": get("busybox", "wget", "-qO-"),
    "gh": {t: ["gh", "api", "{path}"] for t in ("small", "big", "events")},
    "node18-fetch": get("node", js("fetch.mjs")),
    "node18-https": get("node", js("https.mjs"), transfers=STREAM),
    "node20-fetch": get("node20", js("fetch.mjs")),
    "node20-https": get("node20", js("https.mjs"), transfers=STREAM),
    "node24-fetch": get("node24", js("fetch.mjs")),
    "node24-https": get("node24", js("https.mjs")),
    "python-urllib": get("python3", js("get.py"), "urllib"),
    "python-requests": get("python3", js("get.py"), "requests"),
    "python-httpx": get("python3", js("get.py"), "httpx"),
    "python-aiohttp": get("python3", js("get.py"), "aiohttp", transfers=STREAM),
    "certifi-requests": get("python3", js("get.py"), "requests", "/opt/roots.pem", transfers=STREAM),
    "certifi-httpx": get("python3", js("get.py"), "httpx", "/opt/roots.pem", transfers=STREAM),
    "bun-fetch": get("bun", js("fetch.mjs")),
    "bun-https": get("bun", js("https.mjs"), transfers=STREAM),
    "deno-fetch": get("deno", "run", "-qA", js("fetch.mjs")),
    "deno-https": get("deno", "run", "-qA", js("https.mjs"), transfers=STREAM),
    "go": get("goget"),
    "java-url": get("java", "-cp", "/opt/get", "Get", "URL", transfers=STREAM),
    "java-httpclient": get("java", "-cp", "/opt/get", "Get", "HttpClient"),
    "ruby": get("ruby", js("get.rb")),
    # PHP hands out chunked bodies in pieces of 8 KiB, with a plane or without: no event comes alone.
    "php-streams": get("php", js("get.php"), "streams", transfers=("small", "big")),
    "php-curl": get("php", js("get.php"), "curl"),
    "perl-lwp": get("perl", js("get.pl"), "LWP"),
    "perl-httptiny": get("perl", js("get.pl"), "Tiny"),
    "nss": {"small": nss},
    "boto3": {size: ["python3", js("get.py"), "boto3", size] for size in ("small", "big")},
    "aws": {size: aws(size) for size in ("small", "big")},
    "git": {"small": git_clone("small"), "big": git_clone("big"), "fetch": git_fetch, "push": git_push},
    "npm": {size: npm("npm", size) for size in ("small", "big")},
    "npm11-node24": {size: npm("node24 /opt/js/node_modules/npm/bin/npm-cli.js", size) for size in ("small", "big")},
    "bun-add": {size: bun_add(size) for size in ("small", "big")},
    "pip": {size: pip("python3 -m pip install --break-system-packages", size) for size in ("small", "big")},
    "go-mod": {size: go_mod(size) for size in ("small", "big")},
    "cargo": {size: cargo(size) for size in ("small", "big")},
    "apt": {size: apt(size) for size in ("small", "big")},
}



def browser(name):
    def big(mode, work):
        """Measured in the browser, and not here: standard output has the size and the SHA-256."""
        def measured():
            size, sha = open(f"{work}/measured").read().split()
            return int(size), sha
        return ["sh", "-euc", 'python3 "$0" "$1" big "$2" >measured', js("browser.py"), name, "{url}"], measured
    return {"small": ["python3", js("browser.py"), name, "small", "{url}"], "big": big,
            "events": ["python3", js("browser.py"), name, "events", "{url}"]}


BROWSERS = {name: browser(name) for name in ("chromium", "firefox")}

# One client of each kind: what the second engine runs, where an image with all of them would take minutes.
FEW = ("curl", "wget", "busybox-wget", "gh", "node18-fetch", "python-urllib", "python-requests", "python-aiohttp", "perl-lwp", "git", "apt")

IMAGES = {"image": CLIENTS, "browsers": BROWSERS, "few": {name: CLIENTS[name] for name in FEW}}


def environment(mode, home):
    env = {k: v for k, v in os.environ.items()}
    env.update(HOME=home, TMPDIR=home, LANG="C.UTF-8")
    if mode == "without":
        for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy",
                     "GIT_CONFIG_COUNT"):  # http.proxy, among others
            env.pop(name, None)
        for name in list(env):  # clients' own, which files of a project do not override
            if re.match(r"(p?npm_config_(https_proxy|noproxy)|CARGO_HTTP_PROXY)$", name, re.I):
                env.pop(name)
    return env


class Ways:
    """What the clients of this box connect to: the proxy, or an address of a name, which is redirected."""

    def __enter__(self):
        self.before, self.seen, self.ended = set(self.connections()), set(), threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def watch(self):
        while not self.ended.wait(0.01):
            self.look()

    def look(self):
        self.seen.update(way for key, way in self.connections().items() if key not in self.before)

    @staticmethod
    def connections():
        found = {}
        for line in open("/proc/net/tcp").readlines()[1:] + open("/proc/net/tcp6").readlines()[1:]:
            _, local, remote, *_ = line.split()
            addr, port = remote.split(":")
            octets = [int(addr[i:i + 2], 16) for i in range(len(addr) - 2, len(addr) - 10, -2)]  # of an IPv4 address in IPv6 the last ones
            if octets == [127, 0, 0, 1] and int(port, 16) == 3128:
                found[local, remote] = "proxy"
            elif octets[0] == 198 and octets[1] in (18, 19) and octets != [198, 19, 255, 254]:
                found[local, remote] = "redirected"
        return found


def stream(cmd, env, cwd, limit, ack, ways):
    """Runs cmd; returns its code, the bytes and SHA-256 of its output, and its words."""
    out, size = hashlib.sha256(), 0
    words = tempfile.TemporaryFile()
    p = subprocess.Popen(cmd, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words, start_new_session=True)
    signal.alarm(limit)
    seen = b""
    try:
        while chunk := os.read(p.stdout.fileno(), 1 << 20):
            out.update(chunk)
            size += len(chunk)
            if ack:  # an event that has come lets the origin send the next one
                seen += chunk
                ways.look()
                for n in re.findall(rb"^id: (\d+)", seen, re.M):
                    open(f"{HERE}/acks/{ack}.{n.decode()}", "w").close()
        p.wait()
    except TimeoutError:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        return -1, size, out.hexdigest(), f"no end within {limit} s"
    finally:
        signal.alarm(0)
    words.seek(0)
    text = words.read().decode(errors="replace").strip()
    if len(text) > 900:  # what failed is at one end or the other: a Java trace begins with it
        text = text[:500] + " … " + text[-400:]
    return p.returncode, size, out.hexdigest(), text


def digest(path):
    with open(path, "rb") as f:
        return os.path.getsize(path), hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(f.read()).hexdigest()


# What clients say that give up before they have sent a request, after seconds that no setting raises: on a busy
# machine they are run again.
GAVE_UP = ("TLS handshake timeout", "UND_ERR_CONNECT_TIMEOUT", "Tunneling socket connection timed out after 5000ms")


def run(at, client, transfer, mode):
    work = tempfile.mkdtemp(prefix="cell-")
    path = f"repos/{mode}/{client}" + {"big": "/tarball", "events": "/events"}.get(transfer, "")
    cmd = clients[client][transfer]
    expect = None
    if callable(cmd):
        cmd, expect = cmd(mode, work)
    cmd = [a.replace("{url}", f"{API}/{path}").replace("{path}", path) for a in cmd]
    start = time.monotonic()
    with Ways() as ways:
        for _ in range(5):
            code, size, sha, words = stream(cmd, environment(mode, work), work, 600, f"{mode}.{client}" if transfer == "events" else None, ways)
            if code == 0 or not any(words_of in words for words_of in GAVE_UP):
                break
            print(f"{client} gave up: {words}", file=sys.stderr)
    seconds = time.monotonic() - start
    if code == 0 and expect:
        try:
            found = expect() if callable(expect) else expect
            size, sha = found if isinstance(found, tuple) else digest(found)
        except (OSError, IndexError, ValueError) as e:
            code, words = 1, f"{e}\n{words}"
    shutil.rmtree(work, ignore_errors=True)
    print(json.dumps({"at": at, "client": client, "mode": mode, "transfer": transfer, "code": code, "bytes": size, "sha256": sha,
                      "seconds": round(seconds, 3), "way": "+".join(sorted(ways.seen)), "words": "" if code == 0 and "Picked up" not in words else words}), flush=True)


def alarm(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, alarm)
os.makedirs(f"{HERE}/acks", exist_ok=True)
clients, only = IMAGES[sys.argv[1]], sys.argv[3:]
share, shares = map(int, sys.argv[2].split("/"))
for at, client in enumerate(clients):
    if at % shares == share and (not only or client in only):
        for transfer in clients[client]:
            for mode in ("with", "without"):
                run(at, client, transfer, mode)
