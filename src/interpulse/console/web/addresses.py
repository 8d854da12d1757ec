"""Addresses of the console, and paths of the admin API. Names go into them encoded, whatever they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from interpulse.console.host import ROOT
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, TopicName

_FIELDS_MAX: Final = 50


def page_url(page: str, /, **query: object) -> str:
    """Return the address of a page. Query values of None are left out."""
    return f"{ROOT}/{page}{_query(query)}"


def action_url(action: str, /, **fields: object) -> str:
    """Return the address where an action is confirmed."""
    return f"{ROOT}/actions/{action}{_query(fields)}"


def _query(values: Mapping[str, object]) -> str:
    present = {name: str(value) for name, value in values.items() if value is not None}
    return f"?{urlencode(present, quote_via=quote, safe='/:')}" if present else ""


def admin_path(*parts: str, **query: str | int | bool) -> str:
    """Return a path of the admin API. Each part is encoded whole."""
    path = "/admin/v2/" + "/".join(quote(part, safe="") for part in parts)
    return _with(path, "", query)


def namespace_path(namespace: NamespaceName, below: str = "", **query: str | int | bool) -> str:
    """Return a path of the admin API below a namespace. ``below`` is encoded already."""
    return _with(admin_path("namespaces", namespace.tenant, namespace.local), below, query)


def topic_path(topic: TopicName, below: str = "", **query: str | int | bool) -> str:
    """Return a path of the admin API below a topic. ``below`` is encoded already."""
    return _with(f"/admin/v2/{topic.rest_path}", below, query)


def _with(path: str, below: str, query: Mapping[str, str | int | bool]) -> str:
    fields = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
    return f"{path}{below}{f'?{urlencode(fields)}' if fields else ''}"


def read_query(text: str) -> dict[str, str]:
    """Decode the fields of a query or a form. Bytes that are not UTF-8 are refused: they would become another name."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest("The query string is not UTF-8") from None
    except ValueError:
        raise InvalidRequest(f"A request may have {_FIELDS_MAX} fields") from None
    return dict(pairs)


def safe_next(place: str) -> str:
    """Return the page after signing in: the requested one if it is in the console, else the first."""
    path = place.partition("?")[0]
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return ROOT
    inside = path == ROOT or path.startswith(f"{ROOT}/")
    return place if inside and place.isprintable() and "\\" not in decoded and "//" not in decoded else ROOT
