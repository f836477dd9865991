"""How often intervals for success rates hold the truth, where networks of three training seeds differ:

    python benchmarks/interval_coverage.py               # some minutes on one core
    python benchmarks/interval_coverage.py --trials 50

Rates of networks are drawn from a beta distribution around the true mean rate, their episodes with these rates, and 95%
intervals are computed from the counts: Wilson's of all episodes together, the percentiles of a bootstrap that draws
seeds and of each its episodes, and ours (`bilevel.experiments.intervals`). It also tells how much seeds differ in
`results/reproduction.jsonl`, by the method of moments, and how often the interval of the difference of two methods that
are equally good leaves out 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from result_files import Row, origin, write_rows

from bilevel.experiments.intervals import Counts, Interval, rate_difference_interval, rate_interval
from bilevel.experiments.records import wilson_interval
from bilevel.experiments.report.scores import Results
from bilevel.experiments.reproduction.findings import read_findings

SEEDS = 3
EPISODES = (100, 10)  # with each seed: a cell of the table, and a point of a curve
RATES = (0.5, 0.8, 0.95, 0.99)
CORRELATIONS = (0.0, 0.02, 0.05, 0.1, 0.3)
SAMPLES = 1000  # of the bootstrap


def wilson(policies: Sequence[Counts], _: np.random.Generator) -> Interval:
    return wilson_interval(*map(sum, zip(*policies, strict=True)))


def bootstrap(policies: Sequence[Counts], rng: np.random.Generator) -> Interval:
    """Return the percentiles of the mean rate when seeds, and of each seed episodes, are drawn again."""
    rates, episodes = np.array([c.successes / c.episodes for c in policies]), policies[0].episodes
    drawn = rates[rng.integers(len(policies), size=(SAMPLES, len(policies)))]
    low, high = np.quantile(rng.binomial(episodes, drawn).mean(axis=1) / episodes, [0.025, 0.975])
    return float(low), float(high)


def ours(policies: Sequence[Counts], _: np.random.Generator) -> Interval:
    return rate_interval(policies)


METHODS: dict[str, Callable[[Sequence[Counts], np.random.Generator], Interval]] = {
    "wilson": wilson,
    "bootstrap": bootstrap,
    "ours": ours,
}


def draw(rate: float, correlation: float, episodes: int, rng: np.random.Generator) -> list[Counts]:
    """Return the counts of the networks of some seeds, in ascending order, which no interval depends on."""
    size = (1 - correlation) / correlation if correlation else 0.0
    rates = rng.beta(rate * size, (1 - rate) * size, SEEDS) if size else np.full(SEEDS, rate)
    return [Counts(wins, episodes) for wins in sorted(rng.binomial(episodes, rates).tolist())]


def coverage(trials: int) -> Iterator[Row]:
    """Yield how often each interval holds the true rate, and how wide it is on average."""
    rng = np.random.default_rng(0)
    for episodes in EPISODES:
        for rate in RATES:
            for correlation in CORRELATIONS:
                samples = [draw(rate, correlation, episodes, rng) for _ in range(trials)]
                row: Row = {"part": "rate", "seeds": SEEDS, "episodes": episodes, "rate": rate}
                row |= {"correlation": correlation, "trials": trials}
                for name, interval_of in METHODS.items():
                    found = [interval_of(sample, rng) for sample in samples]
                    held = fmean(low <= rate <= high for low, high in found)
                    row[name] = {"held": round(held, 3), "width": round(fmean(high - low for low, high in found), 3)}
                yield row


def differences(trials: int) -> Iterator[Row]:
    """Yield how often the interval of the difference of two equally good methods leaves out 0, which is an error."""
    rng = np.random.default_rng(1)
    for rate in RATES:
        for correlation in CORRELATIONS:
            pairs = [
                (draw(rate, correlation, EPISODES[0], rng), draw(rate, correlation, EPISODES[0], rng))
                for _ in range(trials)
            ]
            found = [rate_difference_interval(first, second) for first, second in pairs]
            errors = sum(not low <= 0 <= high for low, high in found)
            about = {"seeds": SEEDS, "episodes": EPISODES[0], "rate": rate, "correlation": correlation}
            yield {"part": "difference", **about, "trials": trials, "errors": round(errors / trials, 3)}


def measured_correlations(path: Path) -> Iterator[Row]:
    """Yield how much the seeds of a method differ on each task where it neither always succeeds nor always fails."""
    results = Results(read_findings(path))
    for variant in results.variants:
        for task in results.tasks:
            rows = {row.seed: row for row in results.rows(variant, task)}
            rates = [row.successes / row.episodes for row in rows.values()]
            if len(rates) < 2 or (rate := fmean(rates)) in (0, 1) or not variant.recipe:
                continue
            by_size = zip(
                *([size.successes / size.episodes for size in row.sizes] for row in rows.values()), strict=True
            )
            means = [fmean(size) for size in by_size]
            each = next(iter(rows.values())).sizes[0].episodes
            expected = sum(mean * (1 - mean) / each for mean in means) / len(means) ** 2  # of episodes alone
            between = (float(np.var(rates, ddof=1)) - expected) / (rate * (1 - rate))
            yield {"part": "measured", "method": variant.name, "task": task, "correlation": round(between, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--findings", type=Path, default=Path("results/reproduction.jsonl"))
    parser.add_argument("--output", type=Path, default=Path("results/interval-coverage.jsonl"))
    given = parser.parse_args()
    found = [*coverage(given.trials), *differences(given.trials), *measured_correlations(given.findings)]
    write_rows(given.output, [{**row, **origin(["numpy"])} for row in found])


if __name__ == "__main__":
    main()
