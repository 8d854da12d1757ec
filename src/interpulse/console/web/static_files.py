"""Static files of the console: styles, scripts and third-party libraries."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from interpulse.console.web.addresses import ROOT
from interpulse.console.web.response import Response

DIRECTORY: Final = Path(__file__).parent.parent / "static"
_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_DIGITS: Final = 12


class StaticFiles:
    """Read once. Their addresses have a part of their hash, so browsers may keep them for ever."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._files = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in _TYPES}
        self._marks = {name: hashlib.sha256(content).hexdigest()[:_DIGITS] for name, content in self._files.items()}

    def url(self, name: str) -> str:
        """Return the address of a file that exists."""
        return f"{ROOT}/static/{name}?v={self._marks[name]}"

    def response(self, name: str) -> Response | None:
        """Return the file of this name, None if there is none."""
        content = self._files.get(name)
        if content is None:
            return None
        kind = _TYPES[Path(name).suffix]
        return Response(200, content, {"Content-Type": kind, "Cache-Control": "public, max-age=31536000, immutable"})
