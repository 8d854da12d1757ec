"""Completion in the three shells, as the reference says it is switched on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("interpulse-admin")


def run(instruction: str, **variables: str) -> str:
    """What the shell gets from the program when it asks for completion."""
    environment = os.environ | {"_INTERPULSE_ADMIN_COMPLETE": instruction} | variables
    return subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_when_asked_for_then_defines_completion_of_the_program(shell: str) -> None:
    script = run(f"{shell}_source")
    assert f"_INTERPULSE_ADMIN_COMPLETE={shell}_complete" in script
    assert "interpulse-admin" in script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("interpulse-admin top", {"topics", "topicPolicies"}),
        ("interpulse-admin topics peek", {"peek-messages"}),
        ("interpulse-admin topics expire-messages --exp", {"--expireTime", "--expire-time"}),
        ("interpulse-admin topics list -o ", {"json", "yaml", "table", "name", "wide"}),
        ("interpulse-admin topics examine-messages -i ", {"earliest", "latest"}),
    ],
)
def test_words_when_completed_then_are_commands_options_and_choices(words: str, expected: set[str]) -> None:
    last = len(words.split(" ")) - 1
    lines = run("bash_complete", COMP_WORDS=words, COMP_CWORD=str(last)).split()
    assert {line.partition(",")[2] for line in lines} == expected


def test_words_when_completed_in_zsh_and_fish_then_are_the_same() -> None:
    words = {"COMP_WORDS": "interpulse-admin topics trunc", "COMP_CWORD": "2"}
    assert "truncate" in run("zsh_complete", **words).splitlines()
    assert "plain,truncate" in run("fish_complete", **(words | {"COMP_CWORD": "trunc"}))
