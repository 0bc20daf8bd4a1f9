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


def table(results: dict[float, dict[str, tuple[float, float, float]]]) -> str:
    """Format the Markdown table."""
    lines = [
        "| estimator | µs per draw |" + "".join(f" a={a:g} |" for a in results),
        "|---|---|" + "---|" * len(results),
    ]
    for name in ESTIMATORS:
        micros = np.median([rows[name][2] for rows in results.values()]) * 1e6
        columns = []
        for rows in results.values():
            bias, variance, seconds = rows[name]
            shown = "-" if np.isnan(bias) else f"{bias:.2f}"
            columns.append(f" {variance * seconds / rows['implicit'][2]:.3g} ({shown}) |")
        lines.append(f"| {name} | {micros:.1f} |" + "".join(columns))
    return "\n".join(lines)


def figure(results: dict[float, dict[str, tuple[float, float, float]]], path: Path) -> None:
    """Draw cost and bias of each estimator against a."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    canvas, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name in ESTIMATORS:
        rows = [results[a][name] for a in results]
        style = {"ls": "--", "color": "grey"} if name == "score" else {}
        cost = [
            variance * seconds / results[a]["implicit"][2]
            for a, (_, variance, seconds) in zip(results, rows, strict=True)
        ]
        left.loglog(list(results), cost, marker="o", ms=4, label=name, **style)
        right.semilogx(list(results), [bias for bias, _, _ in rows], marker="o", ms=4, label=name, **style)
    left.set(
        xlabel="Dirichlet parameter a", ylabel="variance x time, in units of implicit's time", title="Cost of noise"
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
    biases, greatest = inverse_bias()
    print(f"{biases}\n\nthe greatest bias: {greatest:.2f}")
    further = INVERSE.format(greatest=greatest, documents=_DOCUMENTS)
    title = "# Gradients of the Dirichlet estimators"
    text = "\n\n".join([title, ABOUT, table(results), "![figure](gradients.png)", further, biases])
    (options.out / "gradients.md").write_text(text + "\n", encoding="utf-8")
    print(table(results))


ABOUT = """`gradients.py` (`make bench-gradients`) writes this page. The gradient is that of E[log p(x | theta)] with
respect to log a, where theta is drawn from Dirichlet(a), for one document of 100 words and 20 topics. All entries of a
are equal, except that of one topic, which is twenty times as large.

The columns `a=...` have the variance of the gradient of one draw, summed over topics and divided by the squared length
of the exact gradient, times the time per draw relative to that of `implicit`. Lower is better: half the value is as
good as twice the number of draws. The bias is in brackets, relative to the length of the exact gradient. A dash means
that the bias is too small to distinguish from the noise; `score` has none.

In this comparison, `weibull` uses the Weibulls whose logarithms have the same mean and variance as those of the gammas,
and `laplace` uses the logistic normal of Laplace's approximation. In the model, both have their own parameters. The
bias shown here is therefore that of the approximation, and does not impede learning."""

INVERSE = """## The bias of the inverse distribution function

It depends on the parameters and on the document. Here all topics have the parameter a, and m of them have 100 / m more,
as in the posterior of a document with 100 words of m topics. Each cell has the median over {documents} documents, and
in brackets the greatest value. The greatest of all is {greatest:.2f} of the length of the gradient. A dash means that
the gradient is too small to distinguish from the noise."""


if __name__ == "__main__":
    main()
