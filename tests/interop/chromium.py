"""A real browser: the installed one, else Debian's package, got as `tools/system.sh` gets packages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_INSTALL = "source tools/system.sh && install_first_of chromium"
_ROOT = Path(__file__).parents[2]


class BrowserMissing(Exception):
    """There is no browser, and none can be had."""


def chromium() -> str:
    """The path of the program."""
    found = _installed()
    if found is None:
        subprocess.run(["bash", "-c", _INSTALL], cwd=_ROOT, check=False, timeout=600)
        found = _installed()
    if found is None:
        raise BrowserMissing("chromium is not installed, and apt cannot get it: apt-get install chromium")
    return found


def _installed() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)
