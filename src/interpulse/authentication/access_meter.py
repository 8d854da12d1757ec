"""Metrics of authentication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Final, Protocol

from interpulse.serving.exposition import Exposition, labelled
from interpulse.storage.meters import Histogram

_TOKEN_MINUTES: Final = (5.0, 10.0, 60.0, 240.0)


class CountedKeys(Protocol):
    """A set of keys that is read again when it changes."""

    failures: int
    """Number of changes that could not be read."""

    def keys(self) -> Sized: ...


@dataclass(slots=True)
class AccessMeter:
    """Accepted and refused credentials since the program started."""

    successes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Accepted credentials, by provider and method."""
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Refused credentials, by provider, method and reason."""
    expired_tokens: int = 0
    token_minutes: Histogram = field(default_factory=lambda: Histogram(_TOKEN_MINUTES))
    """The remaining lifetimes of accepted tokens that expire."""
    token_keys: CountedKeys | None = None
    """The set of keys that verifies tokens, if there is one."""

    def write(self, page: Exposition, labels: str = "") -> None:
        """Add the metrics to a page, under Pulsar's names. ``labels`` are those of the program."""
        front = f"{labels}," if labels else ""
        text = "Clients and calls whose credentials were good."
        for (provider, method), count in self.successes.items():
            who = labelled(provider_name=provider, auth_method=method)
            page.add("pulsar_authentication_success_total", "counter", text, front + who, count)
        text = "Clients and calls whose credentials were not good."
        for (provider, method, reason), count in self.failures.items():
            who = labelled(provider_name=provider, auth_method=method, reason=reason)
            page.add("pulsar_authentication_failures_total", "counter", text, front + who, count)
        text = "Tokens that were not accepted because they had expired."
        page.add("pulsar_expired_token_total", "counter", text, labels, self.expired_tokens)
        if self.token_keys is not None:
            text = "Keys of tokenValidationKeysJwks."
            page.add("pulsar_token_validation_keys", "gauge", text, labels, len(self.token_keys.keys()))
            text = "Changes of tokenValidationKeysJwks that could not be read."
            failures = self.token_keys.failures
            page.add("pulsar_token_validation_keys_reload_failures_total", "counter", text, labels, failures)
        text = "Tokens that were accepted and do expire, by the minutes that were left."
        minutes = self.token_minutes
        page.add_histogram("pulsar_expiring_token_minutes", text, labels, minutes.bounds, minutes.counts, minutes.sum)
