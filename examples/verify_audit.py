#!/usr/bin/env python3
"""Verifies an export of aileron's audit log. It needs Python 3.8 and nothing else; docs/audit.md explains the bytes.

    verify_audit.py EXPORT.jsonl [PUBLIC-KEY]      exit code 1: the rows are not what the log had

PUBLIC-KEY is what `aileron audit head --public-key` prints. Without it, signatures are not verified.
"""
import base64
import hashlib
import json
import sys

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493  # Ed25519, RFC 8032, section 5.1
D = -121665 * pow(121666, -1, P) % P


def add(a, b):
    t = D * a[0] * b[0] * a[1] * b[1] % P
    return ((a[0] * b[1] + b[0] * a[1]) * pow(1 + t, -1, P) % P, (a[1] * b[1] + a[0] * b[0]) * pow(1 - t, -1, P) % P)


def times(n, point):
    result = (0, 1)
    for bit in bin(n)[2:]:
        result = add(result, result)
        result = add(result, point) if bit == "1" else result
    return result


def point(raw):
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    need(y < P and x * x % P == square, "its signature has a point that is not on the curve")
    return (x if x & 1 == raw[31] >> 7 else P - x, y)


def signed(key, text, signature):
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % L
    return s < L and times(s, point(bytes([0x58]) + b"\x66" * 31)) == add(point(signature[:32]), times(h, point(key)))


def canonical(row):
    ordered = {name: value for name, value in row.items() if name not in ("ts", "fields", "prev_hash", "hash")}
    seconds, _, fraction = row["ts"].rstrip("Z").partition(".")
    ordered.update(ts=f"{seconds}.{fraction:0<9}Z", fields=row["fields"])
    text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text.encode()


def need(holds, why):
    if not holds:
        raise ValueError(why)


def pruned(row, seq, head, line, first):
    f, chained = row["fields"], first["prev_hash"] if int(seq) == first["seq"] - 1 else head
    said = f"pruned {f['first_seq']} {f['last_seq']} {f['rows']} {f['from']} {f['until']}"
    need([said] == line and int(seq) == f["last_seq"] < row["seq"], "it does not say which rows were pruned")
    need(head == chained, "the first row is not chained to the last one that was pruned")


def check(row, before, key, first):
    digest = hashlib.sha256(row["prev_hash"].encode() + canonical(row)).hexdigest()
    need(digest == row["hash"], "its content does not have its hash")
    need(row["seq"] > before["seq"], f"it comes behind row {before['seq']}")
    need(row["seq"] > before["seq"] + 1 or row["prev_hash"] == before["hash"], "it is not chained to the row before it")
    if row["event"] in ("audit.checkpoint", "audit.pruned"):
        text, signature = row["fields"]["checkpoint"].split("\n\n")
        (origin, seq, head, *line), (_, signer, encoded) = text.split("\n"), signature.split()
        if row["event"] == "audit.pruned":
            pruned(row, seq, base64.b64decode(head).hex(), line, first)
        else:
            same = int(seq) < row["seq"] and base64.b64decode(head).hex() == row["prev_hash"]
            need(same, "its signed head is another row")
        if key:
            (name, print_, public), raw = key.split("+", 2), base64.b64decode(encoded)
            need(name == origin == signer and raw[:4].hex() == print_, "it is signed by another key")
            need(signed(base64.b64decode(public)[1:], f"{text}\n".encode(), raw[4:]), "its signature does not fit")


before, gaps, heads, first = {"seq": 0, "hash": "0" * 64}, 0, 0, None
for number, line in enumerate(open(sys.argv[1], encoding="utf-8"), 1):
    try:
        row = json.loads(line)
        first = first or row
        check(row, before, "".join(sys.argv[2:]), first)
    except (ArithmeticError, LookupError, TypeError, ValueError) as fault:
        sys.exit(f"broken  line {number}: {fault}")
    gaps, before, heads = gaps + row["seq"] - before["seq"] - 1, row, heads + (row["event"] == "audit.checkpoint")
if any(sys.argv[2:]) and not heads:
    sys.exit("broken  no row has a signed head, so that the key verifies nothing")
print(f"ok  up to row {before['seq']}, {gaps} rows are not in the export  {before['hash']}")
