"""Settings of a test: keys of ``broker.conf`` with Python values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TypeAlias

from interpulse.broker.config.broker_config import BrokerConfig, settings_by_key
from interpulse.broker.config.config_sources import load_config
from interpulse.serving.settings import ConfigError, as_text

Setting: TypeAlias = bool | int | str


class IgnoredSettingWarning(UserWarning):
    """A Pulsar key that has no effect on this broker."""


def broker_config(settings: Mapping[str, Setting], defaults: Mapping[str, str], *, stacklevel: int = 1) -> BrokerConfig:
    """Return the configuration of a broker with these settings, and ``defaults`` for other keys.

    Raises ConfigError that lists every unknown key with the nearest known one, and every invalid value. Warns with
    IgnoredSettingWarning of each key without effect; ``stacklevel`` counts from the caller.
    """
    problems = [
        f"{key}={value!r}: must be a bool, an int or a str, and is a {type(value).__name__}"
        for key, value in settings.items()
        if not isinstance(value, Setting)
    ]
    texts = {key: as_text(value) for key, value in settings.items() if isinstance(value, Setting)}
    can_be_off = {key for key, setting in settings_by_key().items() if setting.can_be_off}
    unset = {key: text for key, text in defaults.items() if not texts.get(key) and key not in texts.keys() & can_be_off}
    try:
        loaded = load_config(options=texts | unset)
    except ConfigError as error:
        raise ConfigError(*problems, *error.problems) from None
    if problems:
        raise ConfigError(*problems)
    for warning in loaded.warnings:
        warnings.warn(warning, IgnoredSettingWarning, stacklevel=stacklevel + 1)
    return loaded.config
