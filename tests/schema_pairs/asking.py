"""Asks a real Pulsar about the cases.

`python -m tests.schema_pairs.asking http://127.0.0.1:8080` rewrites the kept answers with those of that one.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from tests.schema_pairs import by_hand, definitions, generated
from tests.schema_pairs.cases import ANSWERS, DEFINITIONS, STRATEGIES, Case, Schema

SECONDS_MAX = 60
ATTEMPTS_MAX = 1000
NOTHING = Schema("STRING", "")


class Asker:
    """One namespace of one Pulsar; each case has a topic of its own in it."""

    def __init__(self, connection: HTTPConnection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace

    def set_strategy(self, strategy: str) -> None:
        """Set it, and wait until the answers carry it."""
        path = f"namespaces/{self._namespace}/schemaCompatibilityStrategy"
        assert self._call("PUT", path, strategy)[0] == 204
        for _ in range(ATTEMPTS_MAX):
            _, answer = self._call("POST", f"schemas/{self._namespace}/nothing/compatibility", NOTHING.body)
            if answer["schemaCompatibilityStrategy"] == strategy:
                return
        raise AssertionError(f"the namespace never got the strategy {strategy}")

    def register(self, case: Case) -> bool:
        """Store its history; whether all of it was taken."""
        return all(self._call("POST", f"{self._topic(case)}/schema", old.body)[0] == 200 for old in case.history)

    def ask(self, case: Case) -> str:
        """yes, no, invalid or error."""
        status, answer = self._call("POST", f"{self._topic(case)}/compatibility", case.new.body)
        if status < 300:
            return "yes" if answer["compatibility"] else "no"
        reason = answer["reason"]
        return "no" if "IncompatibleSchemaE" in reason else "invalid" if "InvalidSchemaDataE" in reason else "error"

    def _topic(self, case: Case) -> str:
        return f"schemas/{self._namespace}/{case.name}"

    def _call(self, method: str, path: str, body: object) -> tuple[int, Any]:
        self._connection.request(method, f"/admin/v2/{path}", json.dumps(body), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}


@contextmanager
def asker(web_url: str) -> Iterator[Asker]:
    """An asker with a fresh namespace below the tenant public."""
    address = urlsplit(web_url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=SECONDS_MAX)
    namespace = f"public/pairs-{uuid.uuid4().hex[:8]}"
    connection.request("PUT", f"/admin/v2/namespaces/{namespace}")
    made = connection.getresponse()
    made.read()
    assert made.status == 204, made.status
    try:
        yield Asker(connection, namespace)
    finally:
        connection.close()


def ask_all(web_url: str, cases: Iterable[Case]) -> dict[str, dict[str, str]]:
    """Every case under every strategy; a history that is refused is the answer to all of them."""
    with asker(web_url) as real:
        real.set_strategy("ALWAYS_COMPATIBLE")
        answers: dict[str, dict[str, str]] = {}
        taken = []
        for case in cases:
            answers[case.name] = {}
            if real.register(case):
                taken.append(case)
        for strategy in STRATEGIES:
            real.set_strategy(strategy)
            for case in taken:
                answers[case.name][strategy] = real.ask(case)
    return answers


def ask_definitions(web_url: str) -> list[tuple[Schema, bool]]:
    """Whether each definition is taken as the first schema of a topic."""
    with asker(web_url) as real:
        return [
            (each, real.register(Case(f"definition-{number}", (each,), NOTHING)))
            for number, each in enumerate(definitions.schemas())
        ]


def main(web_url: str) -> None:
    taken = [{"type": each.type, "schema": each.text, "taken": is_taken} for each, is_taken in ask_definitions(web_url)]
    DEFINITIONS.write_text("".join(f"{json.dumps(line)}\n" for line in taken), encoding="utf-8")
    answers = ask_all(web_url, [*by_hand.cases(), *generated.cases()])
    lines = [json.dumps({"case": name, "real": real}, separators=(",", ":")) for name, real in answers.items()]
    ANSWERS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
