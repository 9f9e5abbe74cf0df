#!/usr/bin/env python3
"""Serves the packages of a folder on 127.0.0.1 as PyPI and npm would.

    python3 deploy/registry.py FOLDER -- COMMAND…

Runs the command with pip and npm set to this server, so that `pip install tidegate` and
`npm install tidegate` take what is in the folder, as after a release. There is nothing else on the
server: a package that needs another one from outside fails. Exits with the command's status.
"""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import threading


def npm_documents(folder, address):
    """For each package of the folder's npm tarballs: what a registry says of it."""
    documents = {}
    for path in sorted(folder.glob("*.tgz")):
        with tarfile.open(path) as packed:
            manifest = json.load(packed.extractfile("package/package.json"))
        content = path.read_bytes()
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        manifest["dist"] = {
            "tarball": f"{address}/files/{path.name}",
            "integrity": f"sha512-{digest}",
            "shasum": hashlib.sha1(content).hexdigest(),
        }
        name, version = manifest["name"], manifest["version"]
        documents[name] = {
            "name": name,
            "dist-tags": {"latest": version},
            "versions": {version: manifest},
        }
    return documents


def python_page(folder):
    """The page of a package index that lists the folder's wheels and sdists."""
    files = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    links = (
        f'<a href="/files/{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">'
        f"{path.name}</a>"
        for path in sorted(files)
        if re.match(r"tidegate-\d", path.name)
    )
    return "<!DOCTYPE html><title>tidegate</title>" + "\n".join(links)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET; anything that is not in the folder is not found."""

    def do_GET(self):
        kind, content = self.server.find(self.path.partition("?")[0])
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


class Registry(http.server.ThreadingHTTPServer):
    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.address = f"http://127.0.0.1:{self.server_port}"

    def find(self, path):
        """The type and the content of an address; no content if there is nothing."""
        if path.rstrip("/") == "/simple/tidegate":
            return "text/html", python_page(self.folder).encode()
        if path.startswith("/npm/"):
            document = npm_documents(self.folder, self.address).get(path[len("/npm/") :])
            return "application/json", document and json.dumps(document).encode()
        file = self.folder / pathlib.PurePosixPath(path).name
        if path.startswith("/files/") and file.is_file():
            return "application/octet-stream", file.read_bytes()
        return "text/plain", None


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    registry = Registry(pathlib.Path(arguments[0]))
    threading.Thread(target=registry.serve_forever, daemon=True).start()
    told = {
        "PIP_INDEX_URL": f"{registry.address}/simple/",
        "PIP_NO_CACHE_DIR": "1",
        "npm_config_registry": f"{registry.address}/npm/",
    }
    return subprocess.run(arguments[2:], env={**os.environ, **told}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
