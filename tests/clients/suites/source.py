"""Fetches the source of a Python package, in which its tests are, and unpacks it: source.py NAME VERSION DIRECTORY.

The registry is the one that pip is set to; what it sends is held against the digest that it names. Nothing is built.
"""

import hashlib
import io
import json
import os
import ssl
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request

from pip._internal.models.index import PyPI


def setting(name):
    """What pip is set to, by the environment or by its files."""
    if told := os.environ.get("PIP_" + name.upper().replace("-", "_")):
        return told
    for section in ("global", "install"):
        command = [sys.executable, "-m", "pip", "config", "get", f"{section}.{name}"]
        told = subprocess.run(command, capture_output=True, text=True)
        if told.returncode == 0 and told.stdout.strip():
            return told.stdout.strip()
    return None


def main(name, version, directory):
    base = (setting("index-url") or PyPI.simple_url).rstrip("/")
    trusted = ssl.create_default_context()
    if authority := setting("cert"):
        trusted.load_verify_locations(authority)
    request = urllib.request.Request(f"{base}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, context=trusted) as page:
        files, url = json.load(page)["files"], page.url
    wanted = f"{name}-{version}.tar.gz"
    for file in files:
        if file["filename"].lower().replace("_", "-") == wanted:
            with urllib.request.urlopen(urllib.parse.urljoin(url, file["url"]), context=trusted) as archive:
                data = archive.read()
            if hashlib.sha256(data).hexdigest() != file["hashes"]["sha256"]:
                sys.exit(f"{wanted} is not what its registry says it is")
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                archive.extractall(directory, filter="data")
            return
    sys.exit(f"there is no {wanted}")


main(*sys.argv[1:])
