"""Who is the limit of a load: the generator, or the cluster."""

from interpulse.cli.perf.generator import Generator, GeneratorFigures


def test_generator_when_its_core_is_used_up_then_is_the_limit() -> None:
    times, cpu = iter([0.0, 10.0]), iter([0.0, 9.9])
    generator = Generator(clock=lambda: next(times), cpu_clock=lambda: next(cpu))
    assert generator.take().limits() == ["its processor is used up (99% of a core)"]


def test_generator_when_late_by_itself_then_is_the_limit() -> None:
    generator = Generator()
    generator.sends(0.2)
    assert "it was 200 ms behind its schedule" in generator.take().limits()
    assert generator.take().late_max_s == 0


def test_generator_when_answers_hold_it_back_then_is_not_to_blame_until_it_has_caught_up() -> None:
    generator = Generator()
    generator.waits()
    generator.sends(5.0)
    taken = generator.take()
    assert (taken.late_max_s, taken.held_back) == (0, True)
    generator.sends(3.0)
    generator.sends(0.001)  # caught up
    generator.sends(0.15)
    assert generator.take().late_max_s == 0.15


def test_generator_when_its_loop_lags_then_is_the_limit() -> None:
    assert GeneratorFigures(0.1, 0.3, 0, False).limits() == ["its event loop was 300 ms late"]
    assert GeneratorFigures(0.1, 0.01, 0.01, True).limits() == []
