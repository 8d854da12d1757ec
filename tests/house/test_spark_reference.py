"""The page of the Spark options says what the code does."""

from tools.generate_spark_reference import PAGE, page


def test_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run .venv/bin/python tools/generate_spark_reference.py"
