"""Contexts: clusters under names of the user, with address and credentials, in a private file.

The file is JSON: ``{"current": NAME, "contexts": {NAME: {KEY: VALUE}}}`` with the keys of ``client.conf``. It is in the
user's configuration directory with mode 0600. A file with credentials that others can read is refused, as ssh refuses
such keys: they may have been read already.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import click

from interpulse.terminal.lazy import nearest_name

CONTEXT_VARIABLE: Final = "INTERPULSE_CONTEXT"
"""Environment variable that chooses a context."""

CONTEXT_KEYS: Final = (
    "brokerServiceUrl",
    "webServiceUrl",
    "authPlugin",
    "authParams",
    "requestTimeoutSeconds",
    "tlsTrustCertsFilePath",
    "tlsAllowInsecureConnection",
    "tlsEnableHostnameVerification",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
)
"""Keys that a context can contain."""

_FOR_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_REFERENCES: Final = ("file:", "env:")


def contexts_path() -> Path:
    """Return the path of the file, which need not exist."""
    return Path(click.get_app_dir("interpulse")) / "contexts.json"


def holds_secret(settings: Mapping[str, str]) -> bool:
    """Return True if the settings contain credentials themselves, not only the place where they are."""
    params = settings.get("authParams", "")
    return bool(params) and not params.startswith(_REFERENCES)


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user, and the name of the current one."""

    current: str | None = None
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Contexts:
        """Read the file, or return no contexts if there is none. Raise click.UsageError if it cannot be used."""
        try:
            with path.open(encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode
                contexts = _checked(json.load(file))
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError) as error:
            raise click.UsageError(f"{path} is not a file of contexts: {error}") from error
        if os.name == "posix" and mode & _FOR_OTHERS and any(map(holds_secret, contexts.settings.values())):
            raise click.UsageError(
                f"{path} holds credentials and others than you can read it: chmod 600 {path}, and renew the credentials"
            )
        return contexts

    def save(self, path: Path) -> None:
        """Replace the file as a whole, readable by its owner only. Raise click.UsageError if it cannot be written."""
        text = json.dumps({"current": self.current, "contexts": self.settings}, indent=2, ensure_ascii=False)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.chmod(beside, 0o600)
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise click.UsageError(f"{path} cannot be written: {error.strerror}") from error

    def named(self, name: str) -> Mapping[str, str]:
        """Return the settings of a context. Raise click.UsageError for an unknown name."""
        if name in self.settings:
            return self.settings[name]
        nearest = nearest_name(name, self.settings)
        known = ", ".join(sorted(self.settings)) or "none so far; interpulse context create makes one"
        raise click.UsageError(
            f"There is no context {name!r}" + (f". Did you mean {nearest!r}?" if nearest else f"; there is {known}")
        )

    def with_context(self, name: str, settings: Mapping[str, str]) -> Contexts:
        return replace(self, settings={**self.settings, name: settings})

    def without(self, name: str) -> Contexts:
        """Return the contexts without one; if it was the current one, none is.

        Raise click.UsageError for an unknown name.
        """
        self.named(name)
        left = {other: settings for other, settings in self.settings.items() if other != name}
        return Contexts(None if self.current == name else self.current, left)

    def using(self, name: str | None) -> Contexts:
        """Return the contexts with another current one. Raise click.UsageError for an unknown name."""
        if name is not None:
            self.named(name)
        return replace(self, current=name)


def chosen_context(name: str | None, environment: Mapping[str, str]) -> tuple[str | None, Mapping[str, str]]:
    """Return the named context, else that of the environment, else the current one, with its settings, if any.

    Raises click.UsageError for an unknown name and for a file that cannot be used.
    """
    contexts = Contexts.load(contexts_path())
    chosen = name or environment.get(CONTEXT_VARIABLE) or contexts.current
    return (None, {}) if chosen is None else (chosen, contexts.named(chosen))


def _checked(content: object) -> Contexts:
    if not isinstance(content, dict) or not isinstance(content.get("contexts"), dict):
        raise TypeError("it has no object of contexts")
    for name, settings in content["contexts"].items():
        if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
            raise TypeError(f"context {name!r} is not an object of strings")
        if unknown := sorted(set(settings) - set(CONTEXT_KEYS)):
            raise ValueError(f"context {name!r} has the unknown key {unknown[0]!r}")
    current = content.get("current")
    if current is not None and current not in content["contexts"]:
        raise ValueError(f"the context in use, {current!r}, is none of them")
    return Contexts(current, content["contexts"])
