"""Rules that derive a role from a name in a certificate, in the notation of Apache Kafka (PIP-485, KIP-371).

``RULE:pattern/replacement/[LU]``: a pattern that matches the whole name, and the role made of its groups, in lower or
upper case if the rule asks for it. ``DEFAULT``: the name itself. The first matching rule decides. Patterns are those of
RE2, so that no name takes long to match.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_DEFAULT: Final = "DEFAULT"
_BETWEEN_RULES: Final = re.compile(r"\s*,\s*(?=RULE:|DEFAULT\s*(?:,|$))")
"""Patterns contain commas too, such as those between the parts of a distinguished name."""
_RULE: Final = re.compile(r"RULE:(?P<pattern>(?:\\.|[^\\])+)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)")
"""The last two unescaped slashes end pattern and replacement: patterns may contain slashes, as URIs do."""
_PIECE: Final = re.compile(r"\\(?P<literal>.)|\$(?P<group>[0-9]+)|(?P<text>[^\\$]+)")
_CASES: Final[dict[str, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, "": str}


class UnusableRules(ValueError):
    """The rules cannot be read. ``str()`` names the rule and the problem."""


class PrincipalMapping:
    """An ordered list of rules."""

    def __init__(self, text: str) -> None:
        """Parse the rules. Without rules the name is the role. Raise UnusableRules."""
        rules = _BETWEEN_RULES.split(text.strip()) if text.strip() else [_DEFAULT]
        self._rules = [_rule(rule) for rule in rules]

    def role(self, name: str) -> str | None:
        """Return the role of a name; None if no rule matches, or if the matching rule leaves it empty."""
        for rule in self._rules:
            role = rule(name)
            if role is not None:
                return role or None
        return None


def _rule(text: str) -> Callable[[str], str | None]:
    if text == _DEFAULT:
        return str
    parts = _RULE.fullmatch(text)
    if parts is None:
        raise UnusableRules(f"{text!r} is neither DEFAULT nor RULE:pattern/replacement/, with L or U at its end")
    pattern, in_case = _pattern(parts["pattern"]), _CASES[parts["case"]]
    pieces = _pieces(text, parts["replacement"], pattern.groups)

    def role(name: str) -> str | None:
        match = pattern.fullmatch(name)
        if match is None:
            return None
        return in_case("".join((match.group(piece) or "") if isinstance(piece, int) else piece for piece in pieces))

    return role


def _pattern(text: str) -> Any:
    import re2  # loaded with the first rule: most programs have none

    options = re2.Options()
    options.log_errors = False  # the error has the text; the library would write it to stderr
    try:
        return re2.compile(text, options)
    except re2.error as error:
        (reason,) = error.args
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise UnusableRules(f"the pattern {text!r} is none of RE2: {shown}") from None


def _pieces(rule: str, replacement: str, groups: int) -> list[str | int]:
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        piece = _PIECE.match(replacement, at)
        if piece is None or (piece["group"] and int(piece["group"]) > groups):
            raise UnusableRules(
                f"{rule!r}: {replacement[at:]!r} in the replacement names none of the {groups} groups of the pattern; "
                r"a dollar sign is written \$"
            )
        pieces.append(int(piece["group"]) if piece["group"] else piece["literal"] or piece["text"])
        at = piece.end()
    return pieces
