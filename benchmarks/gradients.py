"""Compare bias and variance, at equal cost, of gradient estimators for an expectation over a Dirichlet.

    python benchmarks/gradients.py            # writes gradients.md and gradients.png to its folder

The expectation is that of log p(x | theta) = sum_v x_v log (theta beta)_v with theta ~ Dirichlet(a), for one document
of 100 words drawn from 20 topics. The gradient is with respect to log a. All entries of a are equal, except that of one
topic, which is twenty times as large. Each estimator draws many gradients, and the script compares their variance at
equal time: variance x time per draw. The mean of eight times as many implicit gradients is used as the exact gradient.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from topicloom.nn.dirichlet_posteriors import (
    ImplicitDirichlet,
    InverseDirichlet,
    LaplacePosterior,
    RejectionDirichlet,
    ScoreDirichlet,
    SimplexPosterior,
    WeibullPosterior,
    weibull_shape,
)
from topicloom.nn.posteriors import EULER, Draw, laplace_dirichlet

N_TOPICS, N_WORDS, LENGTH = 20, 200, 100
SHAPES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PRIOR = torch.ones(N_TOPICS)
BATCH, REPEATS = 4000, 5
_DOCUMENTS, _BATCHES, _LARGEST_NOISE = 8, 8, 0.05  # of the bias of "icdf" for other parameters


def laplace(a: Tensor) -> LaplacePosterior:
    """Return the logistic normal that approximates each row of Dirichlet(a), as laplace_dirichlet does for one row."""
    n = a.shape[1]
    mean = a.log() - a.log().mean(1, keepdim=True)
    var = (1 - 2 / n) / a + (1 / a).sum(1, keepdim=True) / n**2
    return LaplacePosterior(mean, var.log(), laplace_dirichlet(PRIOR))


def weibull(a: Tensor) -> WeibullPosterior:
    """Return the Weibull variables whose logarithms have the means and variances of those of Gamma(a) variables."""
    k = weibull_shape(a)
    return WeibullPosterior(k, torch.digamma(a) + EULER / k, PRIOR)


def sampler(make: Callable[[Tensor], SimplexPosterior]) -> Callable[[Tensor, torch.Generator], Draw]:
    """Return a function that draws from the posterior with parameters a, (BATCH, K)."""
    return lambda a, generator: make(a).sample(generator)


ESTIMATORS: dict[str, Callable[[Tensor, torch.Generator], Draw]] = {
    "implicit": sampler(lambda a: ImplicitDirichlet(a, PRIOR)),
    "rsvi, B=1": sampler(lambda a: RejectionDirichlet(a, PRIOR, 1)),
    "rsvi, B=5": sampler(lambda a: RejectionDirichlet(a, PRIOR, 5)),
    "icdf": sampler(lambda a: InverseDirichlet(a, PRIOR)),
    "weibull": sampler(weibull),
    "laplace": sampler(laplace),
    "score": sampler(lambda a: ScoreDirichlet(a, PRIOR)),
}


class Problem:
    """A document with topics, and the gradient of its expected log likelihood with respect to log a."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        beta = random.dirichlet(np.full(N_WORDS, 0.1), N_TOPICS)  # (K, V)
        theta = random.dirichlet(np.full(N_TOPICS, 0.1))
        counts = random.multinomial(LENGTH, theta @ beta)
        self.counts = torch.from_numpy(counts[counts > 0]).float()  # (N,)
        self.beta = torch.from_numpy(beta[:, counts > 0]).float()  # (K, N)

    def gradients(
        self, draw: Callable[[Tensor, torch.Generator], Draw], a: float | Tensor, generator: torch.Generator
    ) -> Tensor:
        """Return BATCH gradients of one draw each, (BATCH, K), given all parameters or that of all topics but one."""
        if isinstance(a, Tensor):
            log_a = a.log().repeat(BATCH, 1)
        else:
            log_a = torch.full((BATCH, N_TOPICS), float(np.log(a)))
            log_a[:, 0] += float(np.log(20))
        log_a.requires_grad_()
        drawn = draw(log_a.exp(), generator)
        f = ((drawn.theta @ self.beta + 1e-10).log() * self.counts).sum(1)  # (BATCH,)
        return torch.autograd.grad(drawn.surrogate(f).sum(), log_a)[0]


def measure(problem: Problem, a: float) -> dict[str, tuple[float, float, float]]:
    """Return the relative bias, the relative variance of a draw, and the seconds per draw of each estimator."""
    generator = torch.Generator().manual_seed(0)
    exact = torch.stack(
        [problem.gradients(ESTIMATORS["implicit"], a, generator).double().mean(0) for _ in range(8 * REPEATS)]
    ).mean(0)
    scale = float(exact.square().sum())
    rows = {}
    for name, draw in ESTIMATORS.items():
        seconds, drawn = [], []
        for _ in range(REPEATS):
            start = time.process_time()
            drawn.append(problem.gradients(draw, a, generator).double())
            seconds.append((time.process_time() - start) / BATCH)
        gradients = torch.cat(drawn)
        variance = float(gradients.var(0).sum())
        distance = float((gradients.mean(0) - exact).square().sum())
        noise = variance / len(gradients) * (1 + 1 / 8)  # of both means
        bias = max(0.0, distance - noise) if distance > 2 * noise else 0.0
        if bias == 0 and noise > 0.05**2 * scale:
            bias = np.nan  # too small to distinguish from the noise
        rows[name] = ((bias / scale) ** 0.5, variance / scale, min(seconds))
    return rows


def inverse_bias() -> tuple[str, float]:
    """Return a table of the bias of "icdf" for other parameters and documents, and the greatest bias of a document.

    The parameters are a for all topics but m, which have a + 100 / m, as in the posterior of a document with 100 words
    of m topics. m is 0, 1, 3 or 20.
    """
    lines = ["| topics of the document |" + "".join(f" a={a:g} |" for a in SHAPES), "|---|" + "---|" * len(SHAPES)]
    greatest = 0.0
    for of_document in (0, 1, 3, N_TOPICS):
        cells = []
        for a in SHAPES:
            parameters = torch.full((N_TOPICS,), a)
            parameters[:of_document] += LENGTH / max(1, of_document)
            biases = [_relative_bias(Problem(seed), parameters) for seed in range(_DOCUMENTS)]
            known = [bias for bias in biases if not np.isnan(bias)]
            greatest = max([greatest, *known])
            cells.append(f"{np.median(known):.2f} ({max(known):.2f})" if known else "-")
        lines.append(f"| {of_document} | {' | '.join(cells)} |")
    return "\n".join(lines), greatest


def _relative_bias(problem: Problem, parameters: Tensor) -> float:
    """Return the distance of the mean gradients of "icdf" and "implicit", without its noise; NaN if it is noise."""
    means, noise = [], 0.0
    for name in ("implicit", "icdf"):
        generator = torch.Generator().manual_seed(1)
        gradients = torch.cat([problem.gradients(ESTIMATORS[name], parameters, generator) for _ in range(_BATCHES)])
        means.append(gradients.double().mean(0))
        noise += float(gradients.var(0).sum()) / len(gradients)
    scale, distance = float(means[0].square().sum()), float((means[1] - means[0]).square().sum())
    if noise > _LARGEST_NOISE**2 * scale:
        return np.nan
    return (max(0.0, distance - noise) / scale) ** 0.5


def tables(results: dict[float, dict[str, tuple[float, float, float]]]) -> tuple[str, str, str]:
    """Format the tables of variance at equal time, of bias, and of the time and variance of a draw."""
    head = "| estimator |" + "".join(f" a={a:g} |" for a in results) + "\n|---|" + "---|" * len(results)
    costs, biases, draws = [head], [head], ["| estimator | µs per draw | variance at a=0.1 |\n|---|---|---|"]
    for name in ESTIMATORS:
        rows = [every[name] for every in results.values()]
        costs.append(f"| {name} | {' | '.join(f'{cost(results, a, name):.3g}' for a in results)} |")
        biases.append(f"| {name} | {' | '.join('-' if np.isnan(bias) else f'{bias:.2f}' for bias, _, _ in rows)} |")
        micros = np.median([seconds for _, _, seconds in rows]) * 1e6
        draws.append(f"| {name} | {micros:.1f} | {results[0.1][name][1]:.3g} |")
    return "\n".join(costs), "\n".join(biases), "\n".join(draws)


def cost(results: dict[float, dict[str, tuple[float, float, float]]], a: float, name: str) -> float:
    """Return the relative variance of an estimator times its time per draw, in units of the time of "implicit"."""
    _, variance, seconds = results[a][name]
    return variance * seconds / results[a]["implicit"][2]


def findings(results: dict[float, dict[str, tuple[float, float, float]]]) -> str:
    """Return what the tables say, in sentences with their figures."""

    def ratios(name: str, shapes: tuple[float, ...] = SHAPES) -> tuple[float, float]:
        every = [cost(results, a, name) / cost(results, a, "implicit") for a in shapes]
        return min(every), max(every)

    def biases(name: str) -> list[float]:
        return [results[a][name][0] for a in SHAPES]

    inverse, score, small = ratios("icdf"), ratios("score"), ratios("rsvi, B=5", SHAPES[:3])
    return FINDINGS.format(
        first=cost(results, SHAPES[0], "implicit"),
        last=cost(results, SHAPES[-1], "implicit"),
        low=f"{score[0]:,.0f}",
        high=f"{float(f'{score[1]:.2g}'):,.0f}",
        inverse=f"{inverse[0]:.2f} to {inverse[1]:.2f}",
        inverse_bias=f"{np.nanmax(biases('icdf')):.2f}",
        small=f"{small[0]:.1f} to {small[1]:.1f}",
        large=f"{ratios('rsvi, B=5', SHAPES[-1:])[1]:.0f}",
        unaugmented=f"{ratios('rsvi, B=1', (1.0,))[1]:.0f}",
        weibull=f"{np.nanmax(biases('weibull')):.1f}",
        laplace=f"{np.nanmax(biases('laplace')):.1f}",
        weibull_last=f"{biases('weibull')[-1]:.2f}",
        laplace_last=f"{biases('laplace')[-1]:.2f}",
    )


def figure(results: dict[float, dict[str, tuple[float, float, float]]], path: Path) -> None:
    """Draw cost and bias of each estimator against a."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    canvas, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name in ESTIMATORS:
        rows = [results[a][name] for a in results]
        style = {"ls": "--", "color": "grey"} if name == "score" else {}
        left.loglog(list(results), [cost(results, a, name) for a in results], marker="o", ms=4, label=name, **style)
        right.semilogx(list(results), [bias for bias, _, _ in rows], marker="o", ms=4, label=name, **style)
    left.set(
        xlabel="Dirichlet parameter a",
        ylabel="variance x time, in units of implicit's time",
        title="Variance at equal time",
    )
    right.set(xlabel="Dirichlet parameter a", ylabel="bias / length of the gradient", title="Bias", ylim=(-0.02, None))
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, lw=0.5)
    canvas.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="folder to write to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    problem = Problem()
    results = {a: measure(problem, a) for a in SHAPES}
    figure(results, options.out / "gradients.png")
    inverse, greatest = inverse_bias()
    costs, biases, draws = tables(results)
    parts = [
        ABOUT,
        findings(results),
        COST,
        costs,
        "![Variance at equal time, and bias, of each estimator by the Dirichlet parameter](gradients.png)",
        DRAWS,
        draws,
        BIAS,
        biases,
        INVERSE.format(greatest=greatest, documents=_DOCUMENTS),
        inverse,
        AGAIN.format(seconds=time.process_time()),
    ]
    (options.out / "gradients.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


ABOUT = """# Gradients of the Dirichlet estimators

A topic model with Dirichlet posteriors has to estimate the gradient of an expectation over a Dirichlet from draws.
Seven ways to do this are compared here: how much they vary, how far they are wrong on average, and what a draw
costs. [DirichletVAE](../docs/models/dirichlet.md#six-estimators) has the formulas and sources, and [page 5 of the
course](../docs/course/05-estimators.ipynb) derives them.

## What is measured

One document x of 100 words is drawn from 20 topics beta. Its shares theta follow Dirichlet(a). The gradient is that
of E[log p(x | theta)] = E[sum_v x_v log (theta beta)_v] with respect to log a. All entries of a are equal, except
that of one topic, which is twenty times as large. The columns `a=...` of the tables have the value of the other
entries: small ones give a document few topics.

- The exact gradient is the mean of 160,000 implicit gradients of one draw each.
- The variance is that of the gradient of one draw, summed over topics and divided by the squared length of the
  exact gradient. At 1, the noise of one draw is as large as the gradient.
- Variance at equal time is this variance times the time of a draw, in units of the time of `implicit`. Half the
  value is as good as twice the number of draws.
- The bias is the distance between the mean of 20,000 estimates and the exact gradient, as a part of the length of
  the exact gradient.

`rsvi, B=1` and `rsvi, B=5` are `estimator="rsvi"` with an `augmentation` of 1 and 5. `weibull` uses the Weibull
variables whose logarithms have the same mean and variance as those of the gammas, and `laplace` the logistic normal
of Laplace's approximation. In the model, both have parameters of their own, and a prior of their kind. Their bias
here is that of the approximation, and does not impede learning."""

FINDINGS = """## What the tables say

- **Small parameters are hard.** The variance of `implicit` falls from {first:.0f} at a=0.01 to {last:.4f} at a=10.
- **The score function varies far more.** Its variance at equal time is {low} to {high} times that of `implicit`.
- **`icdf` is the cheapest, and slightly wrong.** It has {inverse} times the variance of `implicit` at equal time,
  and a bias of up to {inverse_bias} of the gradient.
- **`rsvi` needs its augmentation.** With B=5, it has {small} times the variance of `implicit` up to a=0.1, and
  {large} times at a=10. With B=1, it has {unaugmented} times the variance at a=1.
- **`weibull` and `laplace` approximate.** Their bias is up to {weibull} and {laplace} times the gradient at small
  parameters, and {weibull_last} and {laplace_last} at a=10."""

COST = "## Variance at equal time\n\nLower is better."

DRAWS = "What a draw costs (median over the columns above), and its variance without regard to time:"

BIAS = """## Bias

A dash means that the bias is too small to distinguish from the noise. `score` has none by construction."""

INVERSE = """## The bias of the inverse distribution function

The bias of `icdf` depends on the parameters and on the document. Here all topics have the parameter a, and m of
them have 100 / m more, as in the posterior of a document with 100 words of m topics. Each cell has the median over
{documents} documents, and in brackets the greatest value. The greatest of all is {greatest:.2f} of the length of
the gradient. A dash means that the gradient is too small to distinguish from the noise."""

AGAIN = """## Run it again

`make bench-gradients` writes this page and its picture. It takes {seconds:.0f} s of processor time, one thread and
no data. `Problem` in `gradients.py` makes the document, `SHAPES` has the values of a, and an entry of `ESTIMATORS`
adds an estimator: a function from parameters and a random generator to a draw of theta."""


if __name__ == "__main__":
    main()
