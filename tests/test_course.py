"""The notebooks of the course: their code runs and shows what the text says, in one form, in English and Chinese."""

from __future__ import annotations

import ast
import base64
import functools
import importlib.util
import itertools
import json
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import topicloom as tl

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "docs" / "course"
PAGES = sorted(path.name for path in COURSE.glob("*.ipynb"))
ENGLISH = [name for name in PAGES if not name.endswith(".zh-CN.ipynb")]
LARGEST_PICTURE = 45_000  # bytes
HEADINGS = {
    False: ["Exercises", "Check yourself", "In topicloom", "Sources"],
    True: ["练习", "自测", "在 topicloom 中", "文献"],
}
Names = dict[str, Any]


def autoencoders(names: Names) -> None:
    scores = names["scores"]  # nats for each token: training, test, other half
    assert all(row[2] < names["chance"] for row in scores.values())
    assert min(scores, key=lambda name: scores[name][0]) == "autoencoder"
    assert scores["autoencoder"][2] > max(scores["denoising autoencoder"][2], scores["VAE"][2])
    spread = {
        name: float(encoder(torch.log1p(names["counts"]))[:, :2].std())
        for name, (encoder, _) in names["models"].items()
    }
    assert spread["VAE"] < 1.6 < spread["autoencoder"]


def gradients(names: Names) -> None:
    (forward, wide, _, _), left, right = names["found"].values()
    assert abs(forward) < 1 < 2 < wide  # covers both hills
    assert left[:2] == pytest.approx((-2, 0.82), abs=0.1)
    assert right[:2] == pytest.approx((3, 0.82), abs=0.1)
    assert left[3] < right[3]
    # By hand, for f = -(z - 3)^2 - 20 at z ~ N(0, 1): the variance of f z, of (f + 30) z, and of f'.
    assert list(names["variances"].values()) == pytest.approx([1102, 82, 4], rel=0.1)
    assert all(abs(float(each.mean()) - 6) < 1 for each in names["estimates"].values())
    implicit, score = (model.history_[-1]["reconstruction"] for model in names["models"].values())
    assert implicit < score - 8
    z, log_sd, log_normal = names["z"], torch.tensor(-0.2), names["log_normal"]
    for distance, n_minima in ((5, 2), (3.5, 1)):  # exercise 1
        hills = [log_normal(z, sign * distance / 2, log_sd).exp() for sign in (-1, 1)]
        names["p"] = 0.6 * hills[0] + 0.4 * hills[1]
        means = [names["closest"](False, sign * distance / 2)[0] for sign in (-1, 1)]
        assert (abs(means[1] - means[0]) > 1) == (n_minima == 2)
    # By hand, exercise 2: the variance of (f - 180) z is 1102 + 360 * 32 + 180^2, as E[f z^2] = -32.
    value, draws = names["value"], names["draws"]
    assert float(((value - 180) * draws).std() / (value * draws).std()) == pytest.approx(6.4, rel=0.1)


def elbo(names: Names) -> None:
    for mean, sd in names["tries"].values():
        reconstruction, cost, gap = names["pieces"](mean, sd)
        assert gap >= 0
        assert reconstruction - cost + gap == pytest.approx(names["evidence"], abs=1e-3)
    assert 0 < names["evidence"] - names["elbo"].max() < 0.05
    gaps = []
    for times in (1, 2, 64):  # exercise 1
        score = times * names["log_likelihood"]
        joint = np.exp(score - score.max()) * names["prior"] * names["dz"]
        mean, evidence = (names["z"] * joint).sum() / joint.sum(), np.log(joint.sum()) + score.max()
        pieces = types.FunctionType(names["pieces"].__code__, names | {"log_likelihood": score})
        tried = itertools.product(np.linspace(mean - 0.1, mean + 0.1, 21), np.geomspace(0.07, 0.7, 60))
        gaps.append(min(evidence - np.subtract(*pieces(*each)[:2]) for each in tried))
    assert gaps == pytest.approx([0.028, 0.045, 0.005], abs=0.002)
    costs, losses = names["rate"], names["distortion"]
    assert costs == sorted(costs, reverse=True)
    assert losses == sorted(losses)
    assert costs[-1] < 1


def simplex(names: Names) -> None:
    for gamma, found in names["simulated"].items():
        expected = gamma * np.log(1 + 1000 / gamma)
        assert abs(found[-1] - expected) < 0.15 * expected
    assert round(sum(5 / (5 + i) for i in range(1000)), 1) == 27.0
    assert (names["shares"].max(1) > 0.8).mean() > 0.6


def estimators(names: Names) -> None:
    draws, bias, deviation = names["draws"], names["bias"], names["deviation"]
    exact = torch.tensor([0.3, 1.0, 3.0]) / 4.3
    for name in ("implicit", "rsvi", "score"):
        torch.testing.assert_close(draws[name].mean(0), exact, atol=0.01, rtol=0)
    upper = {name: float(theta[:, 1].quantile(0.99)) for name, theta in draws.items()}
    assert upper["icdf"] < upper["implicit"] - 0.05  # the upper tail is cut off
    assert abs(float(draws["laplace"][:, 0].mean() - exact[0])) > 0.03
    assert max(bias["implicit"] + bias["rsvi"]) < 0.25
    assert max(bias["icdf"]) > 0.2
    assert min(bias["laplace"][:2] + bias["weibull"][:2]) > 0.5
    assert all(
        score > 1.5 * max(others) for score, *others in zip(deviation["score"], deviation["implicit"], strict=True)
    )
    assert names["scores"].pop("score") > max(names["scores"].values()) + 8


def collapse(names: Names) -> None:
    bare, warm, normalised, clusters, default = names["table"].values()  # used topics, diversity, NPMI, KL
    assert bare[3] < 0.3 < 1 < warm[3]
    assert bare[1] < 0.5
    assert warm[0] < 8
    assert min(normalised[0], clusters[0], default[0]) >= 7  # of 8; the texts are those of this Python
    assert names["shares"][-1] > 2 * names["shares"][2]
    assert names["removed"] < 0.05


def latent_space(names: Names) -> None:
    light, heavy, wae = names["scores"].values()  # nats for each token, standard deviation, MMD
    assert light[0] < wae[0] < heavy[0]
    assert light[1] > 1.4 > max(heavy[1], wae[1])
    assert light[2] > 3 * max(heavy[2], wae[2])
    for model in names["gsm"], names["wlda"]:
        main, labels = model.transform(names["three"]).argmax(1), np.array(names["three"].labels)
        assert len({np.bincount(main[labels == label]).argmax() for label in set(labels)}) == 3


def sparsity(names: Names) -> None:
    _, small, large, both = names["inferred"].values()  # topics above 5 %, second share / largest share
    assert small[0] < 2.5 < both[0] < 4.5 < large[0]
    assert small[1] < min(large[1], both[1])
    noise, seen = names["coherence"].values()
    assert noise + 0.2 < seen
    assert names["share"] < 0.05
    assert (names["table"].max(0) > 0.6 * names["table"].sum(0)).sum() >= 4


def gibbs(names: Names) -> None:
    worst = [distance.max() for _, distance in names["found"].values()]
    assert max(worst[:2]) < 0.4 < worst[3]
    exact, sampled, mean_field = names["spreads"].values()
    assert abs(sampled - exact) < 0.1 * exact
    assert mean_field < 0.8 * exact


def judging(names: Names) -> None:
    npmi, c_v, diversity, stability, coverage = names["table"].T  # of the model and of the four other kinds of lists
    assert npmi.argmax() == 1
    assert npmi[3] == -1
    assert c_v[3] > 0.9 * c_v[0]
    assert (diversity[1:4] == 1).all()
    assert stability.argmax() == 4
    assert coverage.argmax() == 0
    (perplexity, coherence), (other_perplexity, other_coherence) = names["points"]["LDA, 16"], names["points"]["GSM, 8"]
    assert perplexity < other_perplexity
    assert coherence < other_coherence


# What the text of a page says of its results, by the number of the page.
CLAIMS: dict[str, Callable[[Names], None]] = {
    "01": autoencoders,
    "02": gradients,
    "03": elbo,
    "04": simplex,
    "05": estimators,
    "06": collapse,
    "07": latent_space,
    "08": sparsity,
    "09": gibbs,
    "10": judging,
}


@functools.cache
def runner() -> Any:
    spec = importlib.util.spec_from_file_location("course", ROOT / "examples" / "screenshots" / "course.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def notebook(name: str) -> Any:
    return json.loads((COURSE / name).read_text(encoding="utf-8"))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, the built-in corpus counted once, and the settings and random states of others as they were."""
    monkeypatch.setattr(tl.datasets, "python_docs", python_docs)
    threads, numpy_state = torch.get_num_threads(), np.random.get_state()  # noqa: NPY002
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]), plt.rc_context():
        yield
    torch.set_num_threads(threads)
    np.random.set_state(numpy_state)  # noqa: NPY002
    plt.close("all")


python_docs = functools.cache(tl.datasets.python_docs)


SLOW = {"05", "06", "07", "08", "09"}  # lessons that train many models


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name[:2] in SLOW else ()) for name in ENGLISH]
)
@pytest.mark.usefixtures("settled")
def test_the_code_runs_and_shows_what_the_text_says(name: str) -> None:
    names: Names = {"__name__": "__main__"}
    for source in runner().code_of(notebook(name)):
        runner().run_cell(source, names, draw=False)
    CLAIMS[name[:2]](names)


def masked(source: str) -> str:
    """The code without comments, and with the same string in place of all strings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "text"
        if isinstance(node, ast.JoinedStr):  # languages order the values of a sentence differently
            node.values = sorted((part for part in node.values if isinstance(part, ast.FormattedValue)), key=ast.dump)
    return ast.dump(tree)


@pytest.mark.parametrize("name", ENGLISH)
def test_both_languages_have_the_same_code(name: str) -> None:
    english, chinese = (runner().code_of(notebook(page)) for page in (name, name.replace(".ipynb", ".zh-CN.ipynb")))
    assert [masked(source) for source in english] == [masked(source) for source in chinese]


@pytest.mark.parametrize("name", PAGES)
def test_outputs_are_stored_in_one_form(name: str) -> None:
    book = notebook(name)
    assert book["metadata"] == runner().METADATA
    assert [cell["id"] for cell in book["cells"]] == [f"cell-{n:02}" for n in range(1, len(book["cells"]) + 1)]
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in book["cells"]:
        assert cell["metadata"] == {}
        for output in cell.get("outputs", ()):
            assert output["output_type"] in ("stream", "execute_result", "display_data")
            if output["output_type"] == "display_data":
                assert 0 < len(base64.b64decode(output["data"]["image/png"])) < LARGEST_PICTURE


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_has_a_caption(name: str) -> None:
    cells, captions = notebook(name)["cells"], 0
    for cell, following in zip(cells, [*cells[1:], {"source": []}], strict=True):
        if any(output["output_type"] == "display_data" for output in cell.get("outputs", ())):
            captions += 1
            label = f"**图 {captions}.**" if ".zh-CN" in name else f"**Figure {captions}.**"
            assert "".join(following["source"]).startswith(label)
    assert captions >= 2


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_exercises_and_five_questions(name: str) -> None:
    text = "\n".join("".join(cell["source"]) for cell in notebook(name)["cells"] if cell["cell_type"] == "markdown")
    headings = HEADINGS[".zh-CN" in name]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[-4:] == headings
    questions = text.split(f"## {headings[1]}")[1].split(f"## {headings[2]}")[0]
    asked, answered = questions.split("<details>")
    for part in (asked, answered):
        assert re.findall(r"^(\d)\. ", part, re.MULTILINE) == list("12345")


@pytest.mark.parametrize("name", PAGES)
def test_links_of_the_course_lead_somewhere(name: str) -> None:
    text = "\n".join("".join(cell["source"]) for cell in notebook(name)["cells"] if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\((?!http)([^)#]+)", text)
    chinese = ".zh-CN" in name
    for link in links:
        assert (COURSE / link).is_file(), link
        assert link.endswith((".zh-CN.ipynb", ".zh-CN.md")) is chinese or link == links[0]


@pytest.mark.parametrize("suffix", ["", ".zh-CN"])
def test_the_list_of_the_course_names_every_page(suffix: str) -> None:
    text = (COURSE / f"README{suffix}.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[.*?\]\((.*?\.ipynb)\)", text, re.MULTILINE)
    assert listed == [name.replace(".ipynb", f"{suffix}.ipynb") for name in ENGLISH]
