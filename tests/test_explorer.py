"""The explorer's page, without a browser: its data, its policy, and the inference that is written into it."""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import topicloom as tl
from command_line import call, refused
from packed import unpack
from topicloom.corpus.fields import covariates_of
from topicloom.errors import InputError
from topicloom.models import REGISTRY
from topicloom.models.gsm import GSMNetwork
from topicloom.models.portable import portable_inference
from topicloom.nn.posteriors import GaussianPosterior
from topicloom.reports import run
from topicloom.reports.explorer import PageOptions, explorer_page, write_page
from topicloom.reports.explorer.page import (
    class_shares,
    covariate_shares,
    largest_shares,
    pack,
    page_parts,
    period_shares,
    topic_positions,
)
from topicloom.topics.positions import document_positions
from topicloom.topics.view import Topics

HOSTILE = "<script>alert(1)</script> </script><img src=x onerror=alert(2)> \u202eevil\u202c \x00 cat dog"


@pytest.fixture(scope="module")
def corpus() -> tl.Corpus:
    pets = [f"the cat and dog play with ball number{i % 7} kitten puppy" for i in range(60)]
    banks = [f"the bank lent money at a rate number{i % 5} loan credit stocks" for i in range(60)]
    texts = [*pets, *banks, HOSTILE, "nothing known"]
    return tl.Corpus.from_texts(
        texts,
        language="en",
        min_df=2,
        labels=["pets"] * 60 + ["<b>banks</b>"] * 60 + ["", "pets"],
        timestamps=[f"2024-{1 + i % 6:02}-03" for i in range(121)] + [None],
        ids=[f"<i>{i}</i>" for i in range(122)],
    )


@pytest.fixture(scope="module")
def topics(corpus) -> Topics:
    return Topics(tl.Loom(n_topics=4, epochs=6, random_state=0).fit(corpus), corpus)


@pytest.fixture(scope="module")
def page(topics) -> str:
    return explorer_page(topics, PageOptions("</title><script>alert(3)</script>"))


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[str] = []
        self.is_open = False

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.contents.append("")
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.is_open:
            self.contents[-1] += data


def parts_of(page: str) -> dict[str, tuple[dict, dict]]:
    return {name: unpack(text) for name, text in re.findall(r'id="part-(\w+)">([^<]*)<', page)}


def test_packed_values_and_arrays_are_unpacked():
    arrays = {
        "a": np.arange(7, dtype=np.uint8),
        "b": np.arange(6, dtype=np.uint16).reshape(2, 3),
        "c": np.array([-5, 1 << 30], np.int32),
        "d": np.array([0.5, -2.25, 6e-8], np.float16),
        "e": np.array([[1e-30, 3.5]], np.float32),
        "f": np.array([np.pi, np.nan]),
        "g": np.zeros((0, 3), np.float32),
    }
    values, found = unpack(pack({"x": "</script>", "y": [1, None]}, arrays))
    assert values == {"x": "</script>", "y": [1, None]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    with pytest.raises(TypeError, match="int64"):
        pack({}, {"a": np.arange(3)})


def test_the_policy_allows_only_its_own_script_and_style(page):
    elements = _Elements()
    elements.feed(page)
    tags = [tag for tag, _ in elements.found]
    policy = next(about["content"] for tag, about in elements.found if about.get("http-equiv"))
    scripts = [text for (tag, about), text in zip(elements.found, elements.contents, strict=True)
               if tag == "script" and "type" not in about]  # fmt: skip
    assert len(scripts) == 1
    assert tags.count("style") == 1
    for text in (scripts[0], elements.contents[tags.index("style")]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert "img" not in tags
    assert not any(name.startswith("on") or name in ("src", "style") for _, about in elements.found for name in about)


def test_users_text_is_data_and_never_markup(page, topics, corpus):
    assert "alert(1)" not in page
    assert "<script>alert(3)" not in page
    parts = parts_of(page)
    core, _ = parts["core"]
    documents, _ = parts["documents"]
    assert parts["texts"][0]["texts"] == list(corpus.texts)
    assert core["title"] == "</title><script>alert(3)</script>"
    assert documents["labels"] == ["<b>banks</b>", "pets"]
    assert documents["ids"][5] == "<i>5</i>"
    assert core["names"] == topics.names
    assert core["classes"]["names"] == ["<b>banks</b>", "pets"]
    assert sum(core["periods"]["documents"]) == 121  # those that have a time and a known word
    assert len(core["periods"]["mean"]) == len(core["periods"]["names"])


def test_numbers_of_topics_are_the_columns_of_theta(page, topics):
    parts = parts_of(page)
    core, arrays = parts["core"]
    np.testing.assert_allclose(arrays["shares"], topics.shares, atol=1e-6)
    assert core["words"] == [[word for word, _ in topics.words_of(k, 30)] for k in range(4)]
    _, documents = parts["documents"]
    theta = np.zeros((len(topics.documents), 4))
    rows = np.repeat(np.arange(len(theta)), documents["sizes"])
    theta[rows, documents["topics"]] = documents["shares"] / 255
    empty = topics.documents.empty
    assert empty.any()
    assert (theta[empty] == 0).all()
    np.testing.assert_allclose(theta[~empty], topics.documents.theta[~empty], atol=0.0101)
    words, words_arrays = parts["words"]
    beta = words_arrays["parts"].astype(np.float64) * words_arrays["largest"][:, None]
    np.testing.assert_allclose(beta.T, topics.components, rtol=2e-3, atol=1e-5)
    assert words["vocabulary"] == topics.vocabulary


def test_documents_have_their_own_classes_times_and_lengths(page, topics, corpus):
    parts = parts_of(page)
    values, arrays = parts["documents"]
    assert ["", *values["labels"]] == ["", "<b>banks</b>", "pets"]
    assert [["", *values["labels"]][code] for code in arrays["labels"]] == corpus.labels
    times = [time.item().replace(tzinfo=datetime.UTC).timestamp() for time in corpus.times[:-1]]
    assert arrays["times"].tolist()[:-1] == times
    assert np.isnan(arrays["times"][-1])
    assert arrays["tokens"].tolist() == corpus.counts.sum(axis=1).tolist()
    mains = [main for main in topics.documents.main_topics if main is not None]
    assert parts["core"][1]["main"].tolist() == [mains.count(k) for k in range(4)]


def test_shares_of_periods_and_classes_are_those_of_the_view(page, topics):
    core, _ = parts_of(page)["core"]
    by_time, by_class = topics.over_time(), topics.by_class()
    assert core["periods"]["names"] == by_time.period_names
    assert core["periods"]["sparse"] == (by_time.sparse & (by_time.shares.n_docs > 0)).tolist()
    times, names = topics.corpus.times.astype("datetime64[s]").astype(float), np.array(core["periods"]["names"])
    for name, start, end in zip(names, core["periods"]["starts"], core["periods"]["ends"], strict=True):
        inside = (times >= start) & (times < end)
        assert inside.sum() == (by_time.periods.codes == names.tolist().index(name)).sum()
    assert core["periods"]["bursts"] == [
        {"topic": each.topic, "first": each.first, "last": each.last} for each in by_time.bursts if each.is_found
    ]
    assert [each["direction"] for each in core["periods"]["trends"]] == [each.direction for each in by_time.trends]
    for shown, shares in ((core["periods"], by_time.shares), (core["classes"], by_class.shares)):
        for name in ("mean", "low", "high"):
            rows = [[np.nan] * 4 if row is None else row for row in shown[name]]  # without documents, or only one
            np.testing.assert_allclose(rows, getattr(shares, name), atol=1e-5)
        assert shown["documents"] == shares.n_docs.tolist()
    banks, pets = core["classes"]["words"]
    assert {"bank", "loan"} <= set(banks)
    assert {"cat", "dog"} <= set(pets)
    assert not set(banks) & set(pets)


def test_documents_without_a_word_are_in_no_period(topics, corpus):
    times = np.full(122, np.datetime64("2024-05-03", "us"))
    timed = replace(corpus, fields=replace(corpus.fields, times=times))
    assert period_shares(Topics(topics.model, timed))["documents"] == [121]


def test_of_many_classes_the_largest_are_shown(topics, monkeypatch):
    monkeypatch.setattr("topicloom.reports.explorer.page._MOST_CLASSES", 1)
    found = class_shares(topics)
    assert (found["names"], found["documents"]) == (["pets"], [60])  # of its 61 documents, one has no word


def test_shares_by_covariates_are_those_of_the_view(topics, corpus):
    n = len(corpus)
    covariates = {"shop": ["b", "a", None, "a"] * (n // 4) + ["a"] * (n % 4), "price": [i % 7 + 0.5 for i in range(n)]}
    priced = Topics(topics.model, replace(corpus, fields=replace(corpus.fields, covariates=covariates_of(covariates))))
    shop, price = covariate_shares(priced)
    assert (shop["by"], shop["names"], price["by"]) == ("shop", ["a", "b"], "price")
    for shown, by in ((shop, priced.by("shop")), (price, priced.by("price"))):
        np.testing.assert_allclose(shown["mean"], by.shares.mean, atol=1e-5)
        np.testing.assert_allclose(shown["low"], by.shares.low, atol=1e-5)
        assert shown["documents"] == by.shares.n_docs.tolist()
    assert "curve" not in shop
    np.testing.assert_allclose(price["curve"]["high"], priced.by("price").curve.high, atol=1e-5)
    assert price["curve"]["values"] == pytest.approx(priced.by("price").curve.values, rel=1e-5)
    codes = unpack(page_parts(priced, PageOptions())["documents"])[1]["covariates"]  # of the group of each document
    assert [["", *shop["names"]][code] or None for code in codes[0]] == covariates["shop"]
    assert [price["names"][code - 1] for code in codes[1]] == [f"{value:g}" for value in covariates["price"]]


PORTABLE: list[tuple[str, dict]] = [
    ("Loom", {}), ("GSM", {}), ("GSM", {"prior": "standard", "latent_size": 5, "encoder_input": "tfidf"}),
    ("ETM", {"embedding_size": 10}), ("ProdLDA", {}), ("NVLDA", {"encoder_input": "l1"}), ("WLDA", {}),
    ("GMNTM", {"pretrain_epochs": 2}), ("DirichletVAE", {"sparsity": 0.3}), ("DirichletVAE", {"estimator": "weibull"}),
    ("DirichletVAE", {"code_norm": "shift", "activation": "relu"}), ("BATM", {"activation": "tanh"}),
    ("GaussianBATM", {"embedding_size": 10}), ("NVDM", {}), ("LDA", {}), ("LDA", {"method": "gibbs"}),
    ("ECRTM", {"embedding_size": 10}),
]  # fmt: skip


def test_every_model_of_the_package_has_a_case():
    assert {name for name, _ in PORTABLE} == set(REGISTRY) - {"FASTopic", "VectorClusters"}  # which read vectors alone


@pytest.mark.parametrize(("name", "settings"), PORTABLE)
def test_portable_inference_is_that_of_the_model(name, settings, corpus):
    model = getattr(tl, name)(n_topics=4, epochs=2, random_state=0, **settings).fit(corpus)
    theta, portable = model.transform(corpus), portable_inference(model)
    assert portable.error(corpus.counts, theta) < 1e-4
    assert portable.halved().error(corpus.counts, theta) < 0.01


class TurningNetwork(GSMNetwork):
    """Weights of its own that are in none of its modules."""

    def __init__(self, settings, words, generator):
        super().__init__(settings, words, generator)
        self.turn = torch.nn.Parameter(torch.randn(8, 8, generator=generator))

    def code(self, batch):
        mean, log_var = self.head(self.encoder(batch, self.noise) @ self.turn)
        return GaussianPosterior(mean, log_var, self.prior, self.to_theta)


class NeedsWordsNetwork(GSMNetwork):
    """A posterior that cannot be computed without words."""

    def code(self, batch):
        batch.counts.values.max()
        return super().code(batch)


class UsesLengthNetwork(GSMNetwork):
    """A posterior that depends on more than the encoder's hidden vector."""

    def code(self, batch):
        code = super().code(batch)
        return GaussianPosterior(code.mean * batch.counts.totals[:, None], code.log_var, self.prior, self.to_theta)


def of_network(kind: type[GSMNetwork], corpus: tl.Corpus) -> tl.GSM:
    """Return a fitted model of the user's with a network."""

    class Own(tl.GSM):
        def build_network(self, words, generator):
            return kind(self, words, generator)

    return Own(n_topics=3, epochs=2, hidden_size=8, random_state=0).fit(corpus)


def test_custom_networks_with_bare_parameters_are_portable(corpus):
    model = of_network(TurningNetwork, corpus)
    assert portable_inference(model).error(corpus.counts, model.transform(corpus)) < 1e-4


@pytest.mark.parametrize("kind", [NeedsWordsNetwork, UsesLengthNetwork])
def test_networks_that_are_not_portable_get_no_inference(corpus, kind):
    model = of_network(kind, corpus)
    parts = parts_of(explorer_page(Topics(model, corpus)))
    assert "inference" not in parts
    assert "the inference of" in parts["core"][0]["no_inference"]


def test_a_model_without_a_network_is_not_portable():
    with pytest.raises(InputError, match="object cannot be written as arrays"):
        portable_inference(object())


def test_broken_sticks_are_not_portable(corpus):
    model = tl.GSM(3, construction="stick_breaking", epochs=1, random_state=0).fit(corpus)
    with pytest.raises(InputError, match="GSMNetwork cannot be written as arrays"):
        portable_inference(model)


def test_portable_inference_of_an_edited_model(topics, corpus):
    edits = [{"drop": [2]}, {"merge": [0, 3]}, {"split": 1, "into": 2}, {"add": 2}, {"rename": {1: "x"}}]
    model = topics.model.apply(edits, corpus)
    portable = portable_inference(model)
    assert portable.error(corpus.counts, model.transform(corpus)) < 1e-4
    parts = parts_of(explorer_page(Topics(model, corpus)))
    assert [set(step) for step in parts["inference"][0]["steps"]] == [
        {"assign", "fewest"}, {"assign", "fewest"}, {"topic", "parts"}, {"steps"}
    ]  # fmt: skip
    assert "x" in parts["core"][0]["names"]


def test_weights_beyond_half_precision_stay_single(topics, monkeypatch):
    monkeypatch.setattr("topicloom.reports.explorer.page._LARGEST_ERROR", 1e-6)
    parts = parts_of(explorer_page(topics))
    assert parts["core"][0]["precision"] == "single"
    assert parts["inference"][1]["weight"].dtype == np.float32
    monkeypatch.setattr("topicloom.reports.explorer.page._LARGEST_ERROR", -1)
    parts = parts_of(explorer_page(topics))
    assert "inference" not in parts
    assert "precision" in parts["core"][0]["no_inference"]


def test_texts_can_be_left_out_and_documents_drawn(topics, corpus):
    parts = parts_of(explorer_page(topics, PageOptions(texts=False, most_documents=30)))
    core, arrays = parts["core"]
    assert "texts" not in parts
    assert (core["n_docs"], core["n_shown"]) == (122, 30)
    np.testing.assert_allclose(arrays["shares"], topics.shares, atol=1e-6)  # of all documents
    rows = parts["documents"][1]["rows"]
    assert len(set(rows.tolist())) == 30
    assert parts["documents"][0]["ids"] == [corpus.ids[row] for row in rows]


def test_long_texts_are_cut_and_the_page_knows_it(topics, monkeypatch):
    monkeypatch.setattr("topicloom.reports.explorer.page._TEXT_BYTES", 4000)
    parts = parts_of(explorer_page(topics))
    assert parts["core"][0]["text_length"] == 30
    assert max(map(len, parts["texts"][0]["texts"])) == 31


def test_documents_without_texts_are_shown_by_their_words(topics, corpus):
    counts = tl.Corpus.from_counts(corpus.counts, corpus.vocabulary)
    parts = parts_of(explorer_page(Topics(topics.model, counts)))
    assert parts["core"][0]["text_kind"] == "words"
    assert set(parts["texts"][0]["texts"][0].split()) <= set(corpus.vocabulary)
    assert parts["core"][0]["periods"] is None
    assert parts["core"][0]["classes"] is None


def test_a_page_of_a_service_has_neither_texts_nor_weights(topics):
    page = explorer_page(topics, PageOptions(api="api"))
    assert "connect-src 'self'" in page
    parts = parts_of(page)
    assert set(parts) == {"core", "documents", "words"}
    assert parts["core"][0]["api"] == "api"


def test_equal_topics_give_equal_pages(topics, page):
    assert explorer_page(topics, PageOptions("</title><script>alert(3)</script>")) == page


def test_largest_shares_are_sorted_and_empty_documents_have_none():
    theta = np.array([[0.2, 0.795, 0.005], [1 / 3, 1 / 3, 1 / 3], [1, 0, 0]])
    sizes, numbers, shares = largest_shares(theta, np.array([False, True, False]))
    assert sizes.tolist() == [2, 0, 1]
    assert numbers.tolist() == [1, 0, 0]
    assert shares.tolist() == [203, 51, 255]


@pytest.mark.parametrize("n", [0, 1, 3, 40])
def test_positions_of_few_documents(n):
    theta = np.random.default_rng(0).dirichlet(np.ones(5), n).astype(np.float32)
    places = document_positions(theta)
    assert places.shape == (n, 2)
    assert ((places >= 0) & (places <= 1)).all()


@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_circles_of_topics_are_in_the_square_and_apart(n):
    random = np.random.default_rng(0)
    points = random.random((n, 3))
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    placed = topic_positions(distances, random.dirichlet(np.ones(n))).astype(np.float64)
    x, y, r = placed.T
    assert (np.minimum(x, y) - r > -0.01).all()
    assert (np.maximum(x, y) + r < 1.01).all()
    gaps = np.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2) - r[:, None] - r
    np.fill_diagonal(gaps, 1)
    assert gaps.min() > -0.05


def test_the_command_writes_a_page_of_a_run(tmp_path, topics, corpus):
    folder = tmp_path / "news"
    run.write(folder, topics.model, corpus, topics.documents, 1.0, run.RunOptions(explorer=True))
    assert "part-core" in (folder / "explorer.html").read_text()
    out = tmp_path / "page.html"
    assert call("explore", folder, "--out", out, "--no-texts", "--title", "Weekly").exit_code == 0
    parts = parts_of(out.read_text())
    assert parts["core"][0]["title"] == "Weekly"
    assert parts["core"][0]["quality"]["measures"]["topic_diversity"]["value"] > 0
    assert "texts" not in parts
    refused("explore", folder, "--out", out, says=["--overwrite"])
    refused("explore", folder, "--out", tmp_path / "page.pdf", says=[".html"])


def test_epochs_without_a_measurement_have_no_value_in_the_page(tmp_path, corpus):
    model = tl.Loom(3, epochs=20, hidden_size=8, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    quality = parts_of((tmp_path / "page.html").read_text())["core"][0]["quality"]
    first = next(number for number, row in enumerate(model.history_) if "concentration" in row)
    assert quality["stages"] == [["pretraining", "counting", first]]
    history = quality["history"]
    assert history["active_topics"] == [row.get("active_topics") for row in model.history_]
    assert None in history["active_topics"]
    assert "kl_per_dimension" not in history  # a list for each epoch


def test_a_run_without_documents_is_refused_in_one_sentence(tmp_path, topics, corpus):
    run.write(tmp_path / "run", topics.model, corpus, topics.documents, 1.0, run.RunOptions(documents=False))
    refused("explore", tmp_path / "run", says=["does not hold its documents"])


def test_the_size_of_a_written_page(tmp_path, topics):
    size = write_page(tmp_path / "page.html", topics)
    assert size == (tmp_path / "page.html").stat().st_size < 400_000
