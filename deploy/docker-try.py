#!/usr/bin/env python3
"""Runs deploy/Dockerfile without Docker, each stage in a Debian root, and tries the image.

    python3 deploy/docker-try.py       as root on Debian

It knows the instructions that the file uses and refuses others. A base image is the Debian of its
name; the image `rust` has this machine's Rust and the crates that this machine has fetched. So it
shows that the commands work and who runs the service, not how Docker stores layers.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
KNOWN = set("FROM RUN COPY WORKDIR USER VOLUME EXPOSE ENTRYPOINT CMD".split())
PORT = 18080


def instructions(text):
    """The instructions of a Dockerfile, without comments and with lines joined."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            if name not in KNOWN:
                sys.exit(f"docker-try: {name} is not known here")
            yield name, rest.strip()


class Stage:
    """One stage: a root, and what the image notes beside its files."""

    def __init__(self, image, folder):
        self.root, self.folder, self.user, self.volumes, self.exposed = folder, "/", None, [], []
        self.entrypoint, self.command = [], []
        suite = re.search(r"(?:debian:|slim-)(\w+)", image)[1]
        self.rust = image.startswith("rust:")
        base = TARGET / "c-roots" / f"{suite}-{'rust' if self.rust else 'plain'}"
        packages = ["gcc", "libc6-dev", "ca-certificates"] if self.rust else ["libc-bin"]
        subprocess.run([ROOT / "deploy/root.sh", suite, base, *packages], check=True)
        subprocess.run(["cp", "-a", base, folder], check=True)

    def path(self, name):
        return self.root / os.path.join(self.folder, name).lstrip("/")

    def mounts(self):
        """What the container has of this machine: names of hosts, and in `rust` its Rust."""
        yield "/etc/resolv.conf", self.root / "etc/resolv.conf"
        if self.rust:
            sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip()
            home = os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo")
            yield sysroot, self.root / "usr/local/rust"
            yield f"{home}/registry", self.root / "usr/local/cargo/registry"

    def start(self, command, **more):
        """Starts a command in the root as the stage's user, with all that a container has."""
        lines = ["mount -t proc proc proc", "mount --rbind /dev dev", "mount -t tmpfs tmpfs tmp"]
        for source, to in self.mounts():
            to.parent.mkdir(parents=True, exist_ok=True)
            to.mkdir(exist_ok=True) if os.path.isdir(source) else to.touch()
            lines.append(f"mount --bind {shlex.quote(source)} {shlex.quote(str(to))}")
        user = f"--userspec={self.user}:{self.user}" if self.user else ""
        places = "/usr/local/rust/bin:" if self.rust else ""
        variables = f"PATH={places}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        variables += " HOME=/" if self.user else " HOME=/root"
        if self.rust:
            variables += " CARGO_HOME=/usr/local/cargo CARGO_NET_OFFLINE=true"
        inside = shlex.join(["sh", "-ec", f'cd {self.folder} && exec "$@"', "in", *command])
        lines.append(f"exec chroot {user} . env -i {variables} {inside}")
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "sh", "-ec",
             "\n".join(lines)], cwd=self.root, **more)

    def run(self, command):
        print(f"docker-try: RUN {command}", flush=True)
        if self.start(["sh", "-c", command]).wait() != 0:
            sys.exit(f"docker-try: this step fails: {command}")


def copy(stage, words, stages):
    """COPY, from the repository's tracked files or from another stage."""
    *sources, to = words
    if sources[0].startswith("--from="):
        other = stages[sources.pop(0).removeprefix("--from=")]
        found = [path for one in sources for path in other.root.glob(one.lstrip("/"))]
        if not found:
            sys.exit(f"docker-try: no {sources} to copy")
        for path in found:
            place = stage.path(to) / path.name if to.endswith("/") else stage.path(to)
            place.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-rL" if path.is_symlink() else "-r", path, place], check=True)
        return
    if sources != ["."]:
        sys.exit("docker-try: COPY of parts is not known here")
    listed = "git ls-files -z --cached --others --exclude-standard".split()
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        if name and (ROOT / name).is_file():
            place = stage.path(to) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place)


def build(text, scratch):
    stages, stage = {}, None
    for name, rest in instructions(text):
        if name == "FROM":
            image, _, label = rest.partition(" AS ")
            label = label or "image"
            stage = stages[label] = Stage(image, scratch / label)
        elif name == "RUN":
            stage.run(rest)
        elif name == "COPY":
            copy(stage, shlex.split(rest), stages)
        elif name == "WORKDIR":
            stage.path(rest).mkdir(parents=True, exist_ok=True)
            stage.folder = rest
        elif name == "USER":
            stage.user = rest
        elif name == "VOLUME":
            stage.volumes.append(rest)
        elif name == "EXPOSE":
            stage.exposed.append(rest)
        else:
            setattr(stage, {"ENTRYPOINT": "entrypoint", "CMD": "command"}[name], json.loads(rest))
    return stage


def ask(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def served(image, command, count):
    """Starts the service, asks it, ends it as Docker does, and returns its answers."""
    service = image.start(image.entrypoint + command)
    try:
        for _ in range(100):
            try:
                answers = [ask(int(command[0]))]
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        answers += [ask(int(command[0])) for _ in range(count - 1)]
        # The namespaces hide the service's own number; it is the child of `unshare`.
        child = pathlib.Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().strip()
        status = pathlib.Path(f"/proc/{child}/status").read_text()
        os.kill(int(child), 15)
        if service.wait(30) != 0:
            sys.exit("docker-try: the service does not end cleanly on SIGTERM")
    finally:
        service.kill()
    if re.search(r"^Uid:\t(\d+)", status, re.M)[1] != image.user or image.user == "0":
        sys.exit("docker-try: the service runs as another user than the file's")
    return answers


def main():
    with tempfile.TemporaryDirectory() as name:
        image = build((ROOT / "deploy/Dockerfile").read_text(), pathlib.Path(name))
        if image.exposed != image.command[:1] or image.volumes != [image.folder]:
            sys.exit("docker-try: the command does not fit EXPOSE and VOLUME")
        if list(image.root.rglob("*cargo*")) or (image.root / "src").exists():
            sys.exit("docker-try: the image has sources or tools")
        command = [str(PORT), "3/d", image.command[2]]
        if served(image, command, 2) != [200, 200] or served(image, command, 2) != [200, 429]:
            sys.exit("docker-try: the counts of the volume do not hold over a restart")
    print("docker-try: the Dockerfile's steps work in roots of Debian; counts outlive the service")


if __name__ == "__main__":
    main()
