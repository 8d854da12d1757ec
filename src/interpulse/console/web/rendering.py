"""Rendering of models as HTML. Every value is escaped, and invisible characters are spelled out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from interpulse.console.host import ROOT
from interpulse.console.web import formats
from interpulse.console.web.addresses import action_url, page_url
from interpulse.console.web.response import Response

DIRECTORY: Final = Path(__file__).parent.parent / "static"
_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_DIGITS: Final = 12
TEMPLATES: Final = Path(__file__).parent.parent / "templates"


class Renderer:
    """The compiled templates."""

    def __init__(self, static_url: Callable[[str], str]) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(static=static_url, page_url=page_url, action_url=action_url)
        self._environment.filters.update(
            count=formats.count,
            rate=formats.rate,
            size=formats.size,
            duration=formats.duration,
            time=formats.time_text,
            ago=formats.ago,
            exact=escape,  # unchanged, for the field of a form
            lines=_lines,
        )
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(values)


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else formats.plain(str(value))


def _lines(text: str) -> Markup:
    return Markup("\n").join(escape(formats.plain(line)) for line in text.split("\n"))


class StaticFiles:
    """Styles, scripts and third-party libraries, read once.

    Their addresses have a part of their hash, so browsers may keep them for ever.
    """

    def __init__(self) -> None:
        self._files = {path.name: path.read_bytes() for path in DIRECTORY.iterdir() if path.suffix in _TYPES}
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
