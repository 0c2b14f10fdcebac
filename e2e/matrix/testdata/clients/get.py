"""Python's HTTP clients: GET to standard output.

With a file of roots, that is what certifi gives: PyPI's packages bring it,
where Debian's look into the system's store.
"""
import sys

kind, *roots, url = sys.argv[1:]
if roots:
    import certifi

    certifi.where = lambda: roots[0]


def put(chunk):
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


if kind == "urllib":
    import urllib.request

    with urllib.request.urlopen(url) as res:
        while chunk := res.read1(1 << 20):
            put(chunk)
elif kind == "requests":
    import requests

    if roots:
        requests.adapters.DEFAULT_CA_BUNDLE_PATH = roots[0]
    with requests.get(url, stream=True) as res:
        res.raise_for_status()
        for chunk in res.iter_content(None):
            put(chunk)
elif kind == "httpx":
    import httpx

    # Its five seconds without a byte are too few on a busy machine.
    with httpx.stream("GET", url, timeout=None) as res:
        res.raise_for_status()
        for chunk in res.iter_bytes():
            put(chunk)
elif kind == "aiohttp":
    import asyncio

    import aiohttp

    async def main():
        async with aiohttp.ClientSession(raise_for_status=True) as session, session.get(url) as res:
            async for chunk in res.content.iter_any():
                put(chunk)

    asyncio.run(main())
elif kind == "boto3":
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    s3 = boto3.client("s3", region_name="us-east-1", config=Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}))
    for chunk in s3.get_object(Bucket="matrix", Key=url)["Body"].iter_chunks(1 << 20):
        put(chunk)
