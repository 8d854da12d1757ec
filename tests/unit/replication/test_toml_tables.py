"""Tables of configuration files, for every program that reads some."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from interpulse.replication.toml_tables import TableReader, load_tables, one_of


@dataclass(frozen=True, kw_only=True)
class Limits:
    least: int
    wait_ms: int = 0
    open: bool = False
    colour: str = "red"
    names: tuple[str, ...] = ()


def reader() -> TableReader:
    return TableReader(strings={"colour": one_of("red", "blue")}, may_be_zero=("wait_ms",))


def test_section_when_values_fit_then_is_its_dataclass():
    tables = reader()
    read = tables.section(Limits, {"least": "2k", "wait_ms": "1s", "colour": "blue", "names": ["a"]}, "limits")
    assert read == Limits(least=2048, wait_ms=1000, colour="blue", names=("a",))
    assert tables.problems == []


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({}, "[limits] needs least"),
        ({"least": 0}, "[limits] least: 0 is not a positive number"),
        ({"least": True}, "[limits] least: True is not a positive number"),
        ({"least": 1, "wait_ms": -1}, "[limits] wait_ms: -1 is not a positive number"),
        ({"least": 1, "open": 1}, "[limits] open: 1 is neither true nor false"),
        ({"least": 1, "colour": "green"}, "[limits] colour: 'green' is not one of red, blue"),
        ({"least": 1, "colour": ""}, "[limits] colour: must be a string"),
        ({"least": 1, "names": "a"}, "[limits] names: must be a list of strings"),
        ({"least": 1, "color": "red"}, "unknown key of [limits] 'color'; did you mean colour?"),
        ({"least": 1, "zzz": 1}, "unknown key of [limits] 'zzz'; there are colour, least, names, open, wait_ms"),
    ],
)
def test_section_when_a_value_does_not_fit_then_the_problem_names_it(table, problem):
    tables = reader()
    tables.section(Limits, table, "limits")
    assert tables.problems == [problem]


def test_table_when_it_is_none_then_is_a_problem():
    tables = reader()
    assert tables.table({"limits": 5}, "limits") == {}
    assert tables.problems == ["limits must be a table: [limits]"]


def test_file_when_it_is_refused_then_the_error_names_it(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("[a]\n")

    def refuse(body):
        raise ValueError(f"{sorted(body)} is no good")

    with pytest.raises(ValueError, match=r"a\.toml: \['a'\] is no good"):
        load_tables(str(path), refuse, ValueError)
    path.write_text("[a")
    with pytest.raises(ValueError, match=r"a\.toml: not TOML"):
        load_tables(str(path), dict, ValueError)
