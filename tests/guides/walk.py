"""Follows a page: its blocks become one shell script, run in a directory of its own, and each has its output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.guides.pages import ROOT, Block

SUPPORT = Path(__file__).with_name("walk.sh")
UV = Path(sys.executable).with_name("uv")
SECONDS_MAX = 1100
_THIS_CHECKOUT = re.compile(r"(pip install (?:--upgrade )?)'?\.(\[[a-z,]+\])?'?(?=\s|$)")
_MARK = "@@ walk "
PINS = "pins.txt"
# What this test run says to its own programs is no business of the page's.
_PRIVATE = re.compile(
    r"^(VIRTUAL_ENV|PYTHON.*|PYTEST.*|PULSAR_.*|SPARK_.*|PYSPARK.*|webServiceUrl|brokerServiceUrl|auth.*)$"
)


class Walk:
    """One reader with an empty directory, a shell, and the package as a wheel instead of a checkout.

    ``installed``: an environment that they have activated, with the package in it; None: they have nothing. It serves
    many walks: a page that installs something needs one of its own.
    ``replaced``: texts of the page that are other ones here, for example addresses. ``environment``: what the reader's
    shell has set.
    """

    def __init__(
        self,
        directory: Path,
        wheel: Path,
        *,
        installed: Path | None = None,
        replaced: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory / "walk"
        self.logs = directory / "logs"
        self.directory.mkdir()
        self.logs.mkdir()
        self._wheel = wheel
        self._first = "" if installed is None else f". {installed}/bin/activate"
        self._replaced = replaced or {}
        python = Path(getattr(sys, "_base_executable", sys.executable)).parent
        self._environment = {
            **{name: value for name, value in os.environ.items() if not _PRIVATE.match(name)},
            "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "WALK_UV": str(UV),
            "WALK_LOGS": str(self.logs),
            "UV_CONSTRAINT": str(wheel.with_name(PINS)),
            **(environment or {}),
        }

    def follow(self, blocks: Iterable[Block]) -> dict[str, str]:
        """Do what the blocks say; standard output by the place of the block that made it."""
        script = "\n".join([f". {SUPPORT}", self._first, *map(self._part, blocks)])
        (self.logs / "script.sh").write_text(script)
        with (self.logs / "errors.log").open("w+") as errors:
            process = subprocess.Popen(
                ["bash", str(self.logs / "script.sh")],
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            try:
                output, _ = process.communicate(timeout=SECONDS_MAX)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            errors.seek(0)
            assert process.returncode == 0, f"{output}\n{errors.read()}"
        parts = output.split(_MARK)[1:]
        return {place: said for place, _, said in (part.partition("\n") for part in parts)}

    def _part(self, block: Block) -> str:
        text = _THIS_CHECKOUT.sub(lambda found: f"{found[1]}'{self._wheel}{found[2] or ''}'", block.text)
        for written, here in self._replaced.items():
            text = text.replace(written, here)
        if block.file_name is not None:
            text = f"cat >{block.file_name} <<'END OF BLOCK'\n{text}END OF BLOCK\n"
        else:
            assert block.language == "sh", f"{block.place} is neither a command nor a file"
        return f"echo '{_MARK}{block.place}'\n{text}"


def install(wheel: Path, extras: str, environment: Path) -> Path:
    """A new environment with the package in it."""
    subprocess.run([UV, "-q", "venv", environment], check=True)
    package = ["--python", str(environment), "-c", str(wheel.with_name(PINS)), f"{wheel}[{extras}]"]
    for offline in (["--offline"], []):  # what uv's cache has, it takes from there; the rest comes from the index
        if subprocess.run([UV, *offline, "pip", "install", "-q", *package], check=False).returncode == 0:
            return environment
    raise AssertionError("uv could not install the wheel; its message stands above")


def build_wheel(directory: Path) -> Path:
    """The wheel that a release would be made of, and beside it the versions to install with it."""
    _write_pins(directory / PINS)
    build(ROOT, directory, "--wheel")
    return next(directory.glob("*.whl"))


def build(source: Path, target: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
    """The files of a release of these sources: a wheel and an sdist where ``options`` do not say which."""
    for offline in (["--offline"], []):
        line = [UV, "build", "-q", *options, *offline, "-o", target, source]
        if subprocess.run(line, check=False, env=environment).returncode == 0:  # type: ignore[arg-type]
            return
    raise AssertionError("uv build failed; its message stands above")


def _write_pins(pins: Path) -> None:
    """The versions of uv.lock: what was released this morning is not what is tested here."""
    wanted = ("--frozen", "--offline", "--all-extras", "--no-emit-project", "--no-hashes", "--no-annotate")
    subprocess.run([UV, "export", "-q", *wanted, "--project", ROOT, "-o", pins], check=True, stdout=subprocess.DEVNULL)
