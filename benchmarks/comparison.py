"""How one broker compares with another: ratios, aims, and what is more than noise."""

from collections.abc import Sequence

from benchmarks.figures import Aim, Sample

NOISE_MIN = 0.1
"""Less than this is noise on every machine."""


def times_better(ours: float, other: float, *, higher_is_better: bool) -> float:
    """More than 1 where ours is better, 0 where there is nothing to compare."""
    if not ours or not other:
        return 0
    return ours / other if higher_is_better else other / ours


def ratio(ours: Sample | None, other: Sample | None, *, higher_is_better: bool) -> str:
    """How many times better ours is in the value and, in brackets, in processor time."""
    if ours is None or other is None:
        return "-"
    better = times_better(ours.value, other.value, higher_is_better=higher_is_better)
    if not better:
        return "-"
    if not ours.cpu_us or not other.cpu_us:
        return f"{better:.2f}x"
    return f"{better:.2f}x ({other.cpu_us / ours.cpu_us:.2f}x)"


def is_worse(ours: Sequence[float], before: Sequence[float], *, higher_is_better: bool) -> bool:
    """Whether the best of ours is worse than the best before by more than noise.

    Noise is a tenth, or as much as the rounds of either differ; one round does not tell that, and is never worse.
    """
    if min(len(ours), len(before)) < 2:
        return False
    noise = max(NOISE_MIN, *(_spread(samples, higher_is_better) for samples in (ours, before)))
    choose = max if higher_is_better else min
    better = times_better(choose(ours), choose(before), higher_is_better=higher_is_better)
    return 0 < better < 1 / (1 + noise)


def judge(aim: Aim, ours: Sample, real: Sample | None, *, of_cpu_us: float | None, higher_is_better: bool) -> str:
    """The aim in words, and whether it is reached; ``of_cpu_us``: the processor time that the aim is a multiple of."""
    verdicts: dict[str, bool | None] = {}
    if aim.times_better is not None:
        better = real and times_better(ours.value, real.value, higher_is_better=higher_is_better)
        verdicts[f">= {aim.times_better:g}x"] = better >= aim.times_better if better else None
    if aim.times_less_cpu is not None:
        less = _quotient(real.cpu_us if real else None, ours.cpu_us)
        verdicts[f"CPU >= {aim.times_less_cpu:g}x"] = less >= aim.times_less_cpu if less else None
    if aim.at_most is not None:
        verdicts[f"<= {aim.at_most:g}"] = ours.value <= aim.at_most
    if aim.cpu_of is not None:
        figure, times = aim.cpu_of
        more = _quotient(ours.cpu_us, of_cpu_us)
        verdicts[f"CPU <= {times:g} x {figure}"] = more <= times if more else None
    words = ", ".join(verdicts)
    if None in verdicts.values():
        return words
    return f"{words}: {'reached' if all(verdicts.values()) else 'missed'}"


def _quotient(over: float | None, under: float | None) -> float | None:
    return over / under if over and under else None


def _spread(samples: Sequence[float], higher_is_better: bool) -> float:
    """How much worse the worst round is than the best one."""
    best, worst = (max(samples), min(samples)) if higher_is_better else (min(samples), max(samples))
    better = times_better(best, worst, higher_is_better=higher_is_better)
    return better - 1 if better else 0
