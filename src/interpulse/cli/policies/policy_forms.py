"""Options of policies, and the values that they make, by kind of policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final

import click

from interpulse.cli.support.params import MILLIS, SIZE, STRINGS, TIME
from interpulse.model.policies import catalogue as kinds
from interpulse.model.policies.catalogue import Command, Policy
from interpulse.model.policies.policy_kinds import Kind
from interpulse.model.policies.policy_records import (
    DELETE_WHEN_CAUGHT_UP,
    DELETE_WHEN_NO_SUBSCRIPTIONS,
    DESTINATION_STORAGE,
    QUOTA_POLICIES,
    QUOTA_TYPES,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from interpulse.rules.policy_checks import SCHEMA_STRATEGIES, SUBSCRIPTION_TYPES
from interpulse.terminal.option_groups import option_group

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

STRATEGIES: Final = ("UNDEFINED", *SCHEMA_STRATEGIES)


def switch(subject: str) -> Option:
    """Return the pair ``--enable`` and ``--disable``; see `one_of` and `enabled`."""
    return option_group(
        click.option("-e", "--enable", is_flag=True, help=f"Enable {subject}."),
        click.option("-d", "--disable", is_flag=True, help=f"Disable {subject}."),
    )


def one_of(enable: bool, disable: bool) -> bool:
    """Return the value of the pair. Raise UsageError unless exactly one is given."""
    if enable == disable:
        raise click.UsageError("Need to specify either --enable or --disable")
    return enable


def enabled(enable: bool, disable: bool) -> bool:
    """Return the value of the pair, False without either. Raise UsageError if both are given."""
    if enable and disable:
        raise click.UsageError("Specify either --enable or --disable")
    return enable


@dataclass(frozen=True, slots=True)
class Form:
    """Options, and a function that joins their values to one policy. It raises UsageError."""

    options: tuple[Option, ...]
    join: Callable[..., Any]

    def add(self, command: Callable[..., Any]) -> Callable[..., Any]:
        return option_group(*self.options)(command)

    def joined(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``run`` with the argument ``name``, the joined value, in place of the options."""
        names = signature(self.join).parameters

        async def with_value(*args: Any, **options: Any) -> None:
            value = self.join(**{option: options.pop(option) for option in names})
            await run(*args, **{name: value}, **options)

        return with_value


def _rate(short: str, long: str, name: str, about: str) -> Option:
    return click.option(short, long, name, type=int, default=-1, help=f"{about}; -1, the default, = no limit.")


_PUBLISH_RATE: Final = Form(
    (
        _rate("-m", "--msg-publish-rate", "messages", "Messages per second"),
        _rate("-b", "--byte-publish-rate", "size", "Bytes per second"),
    ),
    lambda messages, size: PublishRate(messages, size),
)

_DISPATCH_RATE: Final = Form(
    (
        _rate("-md", "--msg-dispatch-rate", "messages", "Messages per period"),
        _rate("-bd", "--byte-dispatch-rate", "size", "Bytes per period"),
        click.option("-dt", "--dispatch-rate-period", "period", type=int, default=1, help="Seconds of a period; 1."),
        click.option(
            "-rp", "--relative-to-publish-rate", "relative", is_flag=True, help="Add the rate to the publish rate."
        ),
    ),
    lambda messages, size, period, relative: DispatchRate(messages, size, relative, period),
)

_SUBSCRIBE_RATE: Final = Form(
    (
        _rate("-sr", "--subscribe-rate", "subscribes", "Subscribes of a consumer in a period"),
        click.option("-st", "--subscribe-rate-period", "period", type=int, default=30, help="Seconds of a period; 30."),
    ),
    lambda subscribes, period: SubscribeRate(subscribes, period),
)


def _delayed_delivery(enable: bool, disable: bool, tick: int, longest: int) -> DelayedDelivery:
    return DelayedDelivery(one_of(enable, disable), tick, longest)


_DELAYED_DELIVERY: Final = Form(
    (
        switch("delayed delivery"),
        click.option("-t", "--time", "tick", type=MILLIS, default="1s", help="Precision of delivery times; 1s."),
        click.option("-md", "--maxDelay", "longest", type=MILLIS, default="0", help="Longest delay: 10s, 3h; 0 = any."),
    ),
    _delayed_delivery,
)


def _copies(short: str, long: str, name: str, about: str) -> Option:
    return click.option(short, long, name, type=int, default=2, help=f"{about}; 2.")


_PERSISTENCE: Final = Form(
    (
        _copies("-e", "--bookkeeper-ensemble", "ensemble", "Bookies of a ledger"),
        _copies("-w", "--bookkeeper-write-quorum", "write_quorum", "Bookies that keep each entry"),
        _copies("-a", "--bookkeeper-ack-quorum", "ack_quorum", "Bookies that must have acknowledged an entry"),
        click.option(
            "-r",
            "--ml-mark-delete-max-rate",
            "mark_delete_rate",
            type=float,
            default=-1.0,
            help="Kept for brokers of Apache Pulsar; no effect here.",
        ),
    ),
    lambda ensemble, write_quorum, ack_quorum, mark_delete_rate: Persistence(
        ensemble, write_quorum, ack_quorum, mark_delete_rate
    ),
)


_RETENTION: Final = Form(
    (
        click.option("-t", "--time", "seconds", type=TIME, required=True, help="100m, 3h, 2d, 5w; -1 = for ever."),
        click.option("-s", "--size", "size", type=SIZE, required=True, help="10M, 16G, 3T; -1 = without limit."),
    ),
    lambda seconds, size: RetentionPolicies(
        seconds if seconds < 0 else seconds // 60, size if size < 0 else size >> 20
    ),
)

_STRATEGY: Final = Form(
    (
        click.option(
            "-s",
            "--strategy",
            "-c",
            "--compatibility",
            "value",
            type=click.Choice(STRATEGIES),
            required=True,
            help="The strategy.",
        ),
    ),
    lambda value: value,
)


def _subscription_types(types: list[str]) -> list[str]:
    for name in types:
        if name not in SUBSCRIPTION_TYPES:
            raise click.UsageError(
                f"Illegal subscription type {name}. Possible values: {', '.join(SUBSCRIPTION_TYPES)}."
            )
    return types


CLUSTERS: Final = Form(
    (click.option("-c", "--clusters", type=STRINGS, required=True, help="Cluster names, separated by commas."),),
    lambda clusters: clusters,
)

_ENABLED_TYPES: Final = Form(
    (click.option("-t", "--types", type=STRINGS, required=True, help=f"Some of {','.join(SUBSCRIPTION_TYPES)}."),),
    _subscription_types,
)


def _inactive_topics(enable: bool, disable: bool, seconds: int, mode: str) -> InactiveTopicPolicies:
    if enable == disable:
        raise click.UsageError("Need to specify either enable-delete-while-inactive or disable-delete-while-inactive")
    return InactiveTopicPolicies(mode, seconds, enable)


_INACTIVE_TOPICS: Final = Form(
    (
        click.option("-e", "--enable-delete-while-inactive", "enable", is_flag=True, help="Delete inactive topics."),
        click.option("-d", "--disable-delete-while-inactive", "disable", is_flag=True, help="Keep inactive topics."),
        click.option(
            "-t",
            "--max-inactive-duration",
            "seconds",
            type=TIME,
            required=True,
            help="Time for which an inactive topic is kept: 1s, 10s, 1m, 5h, 3d.",
        ),
        click.option(
            "-m",
            "--delete-mode",
            "mode",
            type=click.Choice([DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP]),
            required=True,
            help="Which topics are inactive: those without subscriptions, or those whose subscriptions are caught up.",
        ),
    ),
    _inactive_topics,
)


def _backlog_quota(size: int | None, seconds: int | None, policy: str, kind: str) -> tuple[BacklogQuota, str]:
    needed, limit = ("-l/--limit", size) if kind == DESTINATION_STORAGE else ("-lt/--limitTime", seconds)
    if limit is None:
        raise click.UsageError(f"A quota of the type {kind} needs {needed}")
    return BacklogQuota(-1 if size is None else size, -1 if seconds is None else seconds, policy), kind


QUOTA_TYPE: Final = click.option(
    "-t",
    "--type",
    "kind",
    type=click.Choice(QUOTA_TYPES),
    default=DESTINATION_STORAGE,
    help="Quota of the size, which is the default, or of the age of the oldest message.",
)

BACKLOG_QUOTA: Final = Form(
    (
        click.option("-l", "--limit", "size", type=SIZE, help="Size: 10M, 16G; -1 = no limit."),
        click.option("-lt", "--limitTime", "seconds", type=TIME, help="Age: seconds, 100m, 3h, 2d, 5w; -1 = no limit."),
        click.option(
            "-p",
            "--policy",
            type=click.Choice(QUOTA_POLICIES),
            required=True,
            help="Action of the broker beyond the limit.",
        ),
        QUOTA_TYPE,
    ),
    _backlog_quota,
)


def form_of(policy: Policy, command: Command) -> Form:
    """Return the options of a policy, in the spelling of ``command``."""
    kind = policy.kind
    if kind is kinds.FLAG:
        return Form((switch(policy.subject),), one_of)
    if kind in _FORMS:
        return _FORMS[kind]
    names, param, about = _NUMBERS[kind]
    about = about.format(policy.subject)
    option = click.option(*(command.options or names), "value", type=param, required=True, help=about)
    return Form((option,), lambda value: value)


_NUMBERS: Final[Mapping[Kind, tuple[tuple[str, ...], Any, str]]] = {
    kinds.COUNT: ((), int, "{}; 0 = no limit."),
    kinds.SECONDS: ((), TIME, "Seconds, or 100m, 3h, 2d, 5w; 0 = no expiry."),
    kinds.MINUTES: (("-t", "--time"), int, "Minutes without a consumer; 0 = never."),
    kinds.INTERVAL: (("-i", "--interval"), int, "Seconds; 0 = only after entries."),
    kinds.BYTES: (("-t", "--threshold"), SIZE, "10M, 16G, 3T; 0 = never."),
    kinds.MESSAGE_SIZE: (("-m", "--max-message-size"), SIZE, "100K; 0 = the broker's."),
}
_FORMS: Final[Mapping[Kind, Form]] = {
    kinds.SUBSCRIPTION_CREATION: Form((switch("automatic creation of subscriptions"),), enabled),
    kinds.TOPIC_STRATEGY: _STRATEGY,
    kinds.TYPES: _ENABLED_TYPES,
    kinds.TOPIC_CLUSTERS: CLUSTERS,
    kinds.RETENTION: _RETENTION,
    kinds.INACTIVE_TOPICS: _INACTIVE_TOPICS,
    kinds.PUBLISH_RATE: _PUBLISH_RATE,
    kinds.DISPATCH_RATE: _DISPATCH_RATE,
    kinds.SUBSCRIBE_RATE: _SUBSCRIBE_RATE,
    kinds.DELAYED_DELIVERY: _DELAYED_DELIVERY,
    kinds.PERSISTENCE: _PERSISTENCE,
}
