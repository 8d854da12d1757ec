"""Shared end of the programs on Spark: failures, and the exit of the process."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import click

from interpulse.model.errors import PulsarError

_UNUSABLE: Final = 2
"""The exit code of a program that could not compare."""


@contextmanager
def spark_failures(program: str) -> Iterator[None]:
    """Turn failures and interruptions, also by SIGTERM, into one sentence and exit code 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        yield
    except click.ClickException:
        raise
    except KeyboardInterrupt:
        _say(program, "stopped before the end; with --dir the same command goes on")
    except (PulsarError, ValueError, OSError) as problem:
        _say(program, str(problem))
    except Exception as problem:  # noqa: BLE001 - of Spark and Java: said in one sentence
        _say(program, _sentence(problem))
    else:
        return
    end_process(_UNUSABLE)


def _say(program: str, sentence: str) -> None:
    click.echo(f"interpulse {program}: {' '.join(sentence.split())}", err=True)


def _sentence(problem: Exception) -> str:
    """Return the last line of a Spark worker's traceback, which is our own sentence."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    traced = [line for line in lines if line.startswith("interpulse.")]
    return (traced or lines or [type(problem).__name__])[0]


def end_process(code: int) -> NoReturn:
    """End the process immediately. An ordinary exit would wait for threads that wait for a killed Java process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
