"""Runbook of a switch: each step with the command of ours, the same by hand, and how to see, undo and decide it.

`interpulse failover switch` does all steps from the fence on. What is written for doing them by hand needs nothing of
ours but the clusters: curl, and pulsar-admin of Apache Pulsar.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from interpulse.failover.fence_holder import fence_name
from interpulse.failover.moves import document_of, filled
from interpulse.failover.pair_config import FILE, HOOK, REDIRECT
from interpulse.failover.planning.plan import Plan
from interpulse.failover.preflight.shell_commands import admin_command, http_command
from interpulse.model.names import NamespaceName
from interpulse.model.operations import Namespaces, Replication
from interpulse.rules.failover_role import ROLE_PROPERTY, Role, make_role

_OPERATOR: Final = "the operator"
_RESPONSIBLE: Final = "the person who is responsible for the producers"
_FENCE_OF_OURS: Final = (
    "Copies go on. The answer has the last position of every topic-partition: keep it for the next step."
)
_FENCE_OF_REAL: Final = (
    "This is the one step that cannot be done by hand: a cluster of Apache Pulsar is fenced by exclusive producers on "
    "all topic-partitions, which `switch` holds open. Copies from the other site wait meanwhile."
)
_SETTLED: Final = (
    "`subscriptionState` is `SYNCED` or null and `subscriptionPending` is 0 for every topic, for some seconds."
)
_POSITION: Final = "__MSG_PROP_REPL_SOURCE_POSITION"


@dataclass(frozen=True)
class RunbookStep:
    """One step. ``ours`` and ``by_hand`` are commands; without ``ours`` an earlier command of ours does the step."""

    title: str
    purpose: str
    holds: str
    undo: str
    takes: str
    decides: str = _OPERATOR
    ours: Sequence[str] = ()
    by_hand: Sequence[str] = ()


def switch_runbook(plan: Plan) -> str:
    """Return the runbook of a switch in Markdown. Blocks of ``sh`` are commands of ours, those of ``bash`` by hand."""
    lines = [*_heading(plan)]
    for number, step in enumerate(switch_plan(plan), 1):
        lines += ["", *_section(number, step)]
    return "\n".join([*lines, "", *_afterwards(plan)]) + "\n"


def _heading(plan: Plan) -> Iterator[str]:
    namespaces = ", ".join(map(str, plan.config.namespaces))
    yield f"# Switch {plan.config.name} from {plan.origin} to {plan.to}"
    yield ""
    yield f"Namespaces: {namespaces}; {len(plan.topics)} topic-partitions; epoch {plan.epoch}."
    yield ""
    yield (
        "Run the commands in order. `interpulse failover switch` in step 4 does all that follows. The blocks headed "
        "*by hand* do the same without it, with curl and pulsar-admin: use either, not both. Add your credentials to "
        "them: they hold none. Exit code 0 means that all is well, 1 that there is something to look at; stop at any "
        "other."
    )


def _section(number: int, step: RunbookStep) -> Iterator[str]:
    yield f"## {number}. {step.title}"
    yield ""
    yield step.purpose
    if step.ours:
        yield from ("", "```sh", *step.ours, "```")
    if step.by_hand:
        yield from ("", "By hand:", "", "```bash", *step.by_hand, "```")
    yield ""
    yield f"* **Holds when**: {step.holds}"
    yield f"* **Undo**: {step.undo}"
    yield f"* **Takes**: {step.takes}"
    yield f"* **Decides**: {step.decides}"


def _afterwards(plan: Plan) -> Iterator[str]:
    yield "## Afterwards"
    yield ""
    yield f"{plan.to} serves, and the copies go from {plan.to} to {plan.origin}. Look at both sites:"
    yield from ("", "```sh", _failover("status", plan), "```", "")
    yield f"To go back, plan and run a switch to {plan.origin}: it gets the next epoch."


def switch_plan(plan: Plan) -> list[RunbookStep]:
    """Return the steps of a switch."""
    return [
        _lease(plan),
        _preflight(plan),
        _ways(plan),
        _fence(plan),
        _drain(plan),
        _settle(plan),
        _promote(plan),
        _move(plan),
        _stand_by(plan),
        _report(plan),
    ]


def _failover(command: str, plan: Plan, *options: str) -> str:
    return " ".join(["interpulse failover", command, "--config", shlex.quote(plan.path), *options])


def _set_role(plan: Plan, site: str, namespace: NamespaceName, role: Role, epoch: int, url: str = "") -> str:
    """Return the call that sets a role, or records it at a cluster of Apache Pulsar, where it has no effect."""
    if plan.is_real(site):
        text = make_role(role, epoch, url=url).stored()
        names = f"{shlex.quote(str(namespace))} -k {ROLE_PROPERTY} -v {shlex.quote(text)}"
        return f"pulsar-admin --admin-url {shlex.quote(plan.admin_url(site))} namespaces set-property {names}"
    operation = Namespaces.SET_FAILOVER_ROLE
    body = {"role": str(role), "epoch": epoch, **({"url": url, "subscriptionsReady": True} if url else {})}
    return http_command(plan.admin_url(site), operation.method, operation.path_of(namespace), body)


def _of_each(plan: Plan, site: str, role: Role, url: str = "") -> list[str]:
    return [_set_role(plan, site, name, role, plan.epoch, url) for name in plan.config.namespaces]


def _shown_role(plan: Plan, site: str, role: str) -> str:
    """Return the condition that each namespace has a role, with the commands that show it."""
    url = plan.admin_url(site)
    shown = [
        f"{admin_command(url, 'namespaces get-property', name)} -k {ROLE_PROPERTY}"
        if plan.is_real(site)
        else admin_command(url, "namespaces get-failover-role", name)
        for name in plan.config.namespaces
    ]
    return f"the role at {site} is `{role}`: {', '.join(f'`{command}`' for command in shown)}"


def _fence_calls(plan: Plan, role: Role) -> list[str]:
    """Return calls that keep the present epoch, so that the fence can be taken back."""
    return [_set_role(plan, plan.origin, name, role, plan.roles[name].epoch) for name in plan.config.namespaces]


def _lease(plan: Plan) -> RunbookStep:
    return RunbookStep(
        "Lease",
        "No other operation on this pair runs. `switch` takes a lease at both sites; by hand, inform all operators.",
        f"{plan.origin} serves, and no operation is shown as unfinished.",
        "nothing is changed.",
        "a second.",
        ours=[_failover("status", plan)],
    )


def _preflight(plan: Plan) -> RunbookStep:
    return RunbookStep(
        "Preflight",
        "Both sites are alike, every way is open, and nothing would be lost. Run the remedy of each error.",
        "the exit code is 0 or 1. Read the warnings: they name programs to restart.",
        "nothing is changed.",
        f"about {2 * len(plan.topics) / plan.config.limits.requests_per_second + 1:.0f} s.",
        ours=[_failover("check", plan, "--to", shlex.quote(plan.to))],
    )


def _ways(plan: Plan) -> RunbookStep:
    commands = [command for site in plan.config.sites for command in _way_commands(plan, site)]
    return RunbookStep(
        "Ways open",
        f"Every topic is copied from {plan.origin} to {plan.to}, and back.",
        "the state of every topic is `REPLICATING`; at a cluster of Apache Pulsar, `replication` has the other cluster "
        "with `connected` true.",
        "nothing is changed.",
        "10 s at most, then `switch` refuses.",
        ours=commands,
    )


def _way_commands(plan: Plan, site: str) -> list[str]:
    url = plan.admin_url(site)
    if plan.is_real(site):
        return [admin_command(url, "topics stats", topic) for topic in plan.topics]
    return [admin_command(url, "namespaces replication-status", name) for name in plan.config.namespaces]


def _fence(plan: Plan) -> RunbookStep:
    is_real = plan.is_real(plan.origin)
    more = _FENCE_OF_REAL if is_real else _FENCE_OF_OURS
    return RunbookStep(
        f"Fence {plan.origin}",
        f"Producers at {plan.origin} are closed and wait in their clients. {more}",
        _fence_holds(plan),
        f"`{_failover('undo', plan, '--yes')}`"
        + ("." if is_real else f"; by hand the same calls with the role `{Role.ACTIVE}`."),
        f"{plan.config.limits.fence_s} s at most. From here on producers have no site.",
        _RESPONSIBLE,
        ours=[_failover("switch", plan, "--to", shlex.quote(plan.to), "--yes")],
        by_hand=[] if is_real else _fence_calls(plan, Role.FENCED),
    )


def _fence_holds(plan: Plan) -> str:
    if plan.is_real(plan.origin):
        name = fence_name(plan.config.name, max(role.epoch for role in plan.roles.values()))
        return f"`topics stats` of each topic-partition lists one producer, `{name}`."
    return f"the answers name a position for each topic-partition, and {_shown_role(plan, plan.origin, Role.FENCED)}."


def _drain(plan: Plan) -> RunbookStep:
    url = plan.admin_url(plan.to)
    return RunbookStep(
        "Drain",
        f"Everything up to the fence has arrived at {plan.to}. A lag of 0 proves nothing: look at the newest copies.",
        f"for each topic-partition, `{_POSITION}` of the newest message is its position of step 4, or that of the last "
        "message that is not a copy itself. An empty topic has nothing to copy.",
        f"as step 4, before step 7; {plan.origin} goes on as before.",
        f"{plan.config.limits.drain_s} s at most (`drain_s`), then `switch` takes itself back.",
        by_hand=[
            f"pulsar-admin --admin-url {shlex.quote(url)} topics examine-messages {shlex.quote(str(topic))} "
            "-i latest -m 1"
            for topic in plan.topics
        ],
    )


def _settle(plan: Plan) -> RunbookStep:
    operation, url = Replication.GET_STATUS, plan.admin_url(plan.origin)
    calls = [http_command(url, operation.method, operation.path_of(name)) for name in plan.config.namespaces]
    is_real = plan.is_real(plan.origin)
    return RunbookStep(
        "Settle",
        f"Acknowledgements of the last seconds are at {plan.to} too.",
        f"no consumer at {plan.origin} has acknowledged anything for some seconds." if is_real else _SETTLED,
        "as step 4, before step 7.",
        f"{plan.config.limits.settle_s} s without a new acknowledgement (`settle_s`).",
        by_hand=[] if is_real else calls,
    )


def _promote(plan: Plan) -> RunbookStep:
    return RunbookStep(
        f"Promote {plan.to}",
        f"{plan.to} serves producers and consumers under epoch {plan.epoch}. **This is the point of no return.**",
        f"{_shown_role(plan, plan.to, f'{Role.ACTIVE};epoch={plan.epoch}')}.",
        f"none: go on to the end, then switch back to {plan.origin}.",
        "a second.",
        _RESPONSIBLE,
        by_hand=_of_each(plan, plan.to, Role.ACTIVE),
    )


def _move(plan: Plan) -> RunbookStep:
    clients, url = plan.config.clients, plan.config.addresses[plan.to].url_of_clients
    commands: list[str] = []
    if REDIRECT in clients.move:
        commands += _of_each(plan, plan.origin, Role.MOVED, url)
    if FILE in clients.move and clients.file is not None:
        path = shlex.quote(clients.file)
        commands.append(f"echo {shlex.quote(document_of(url).strip())} > {path}.new && mv {path}.new {path}")
    if HOOK in clients.move:
        commands.append(shlex.join(filled(argument, plan.hook_values) for argument in clients.hook))
    return RunbookStep(
        "Move clients",
        f"Clients are sent to {url}: {', '.join(clients.move) or 'by you'}.",
        f"producers are connected at {plan.to}: `topics stats` lists them there, and none at {plan.origin}.",
        "run a switch back.",
        "as long as clients need to connect again.",
        by_hand=commands,
    )


def _stand_by(plan: Plan) -> RunbookStep:
    return RunbookStep(
        f"{plan.origin} stands by",
        f"{plan.origin} keeps the copies from {plan.to}. Do this once no client asks {plan.origin} any more: a site "
        "that stands by redirects no one.",
        f"{_shown_role(plan, plan.origin, f'{Role.STANDBY};epoch={plan.epoch}')}, and a message that is published at "
        f"{plan.to} arrives there.",
        "run a switch back.",
        "minutes to days; nothing waits for it.",
        by_hand=_of_each(plan, plan.origin, Role.STANDBY),
    )


def _report(plan: Plan) -> RunbookStep:
    return RunbookStep(
        "Report",
        "Write down when producers stopped (step 4) and went on (step 7), and which programs were restarted. `switch` "
        f"prints it, and keeps it in `{plan.config.state}/operations`.",
        "it is written.",
        "nothing is changed.",
        "minutes.",
    )
