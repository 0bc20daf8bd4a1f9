"""What every model keeps, whatever it is: a model joins these checks by its line in MODELS."""

from __future__ import annotations

import copy
import dataclasses
import io
import logging
import pickle
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import chain
from multiprocessing.reduction import ForkingPickler
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from kinds import RELATIVES, params
from topicloom.corpus import Corpus
from topicloom.datasets import synthetic_lda
from topicloom.embeddings.word_vectors import WordVectors
from topicloom.errors import InputError, SettingError, TrainingDivergedError
from topicloom.metrics import CATALOGUE
from topicloom.models import BATM, ECRTM, GMNTM, GSM, LDA, MODELS, NVDM, WLDA, Loom, ProdLDA, VectorClusters, base
from topicloom.models.autoencoders import VariationalTopicModel
from topicloom.models.base import TopicModel
from topicloom.models.inference import evidence_bound
from topicloom.models.loading import load
from topicloom.models.neural import NeuralTopicModel
from topicloom.nn.decoders import MixtureDecoder
from topicloom.nn.network import Loss, Player, TopicNetwork
from topicloom.nn.sparse import Batch
from topicloom.training.callbacks import Callback

N_TOPICS = 3
COUNTS = synthetic_lda(n_docs=80, n_topics=N_TOPICS, n_words=30, doc_length=20).corpus.counts
VOCABULARY = [f"{onset}{vowel}{coda}" for onset in "bdfgk" for vowel in "aeo" for coda in "nt"]
TOKENS = [np.repeat(VOCABULARY, row).tolist() for row in COUNTS.toarray().astype(int)]
TEXTS = [" ".join(tokens) for tokens in TOKENS]
CORPUS = Corpus.from_counts(COUNTS, VOCABULARY)

Make = Callable[..., TopicModel]
VARIANTS: dict[str, list[dict[str, Any]]] = {  # settings that make another model of a class, or a small one
    "ECRTM": [{"embedding_size": 8}],
    "ETM": [{"embedding_size": 8}],
    "GaussianBATM": [{"embedding_size": 8}],
    "LDA": [{"method": "variational"}, {"method": "gibbs"}],
}
SMALL = {"epochs": 3, "batch_size": 32, "hidden_size": 16, "critic_size": 16}


def small(kind: type[TopicModel], n_topics: int = N_TOPICS, **settings: Any) -> TopicModel:
    """A model that is fitted in a fraction of a second."""
    known = kind().get_params()
    defaults = {name: value for name, value in SMALL.items() if name in known}
    return kind(n_topics, **{"random_state": 0, "device": "cpu", **defaults, **settings})


def case(kind: type[TopicModel], settings: dict[str, Any]) -> Any:
    missing = settings.get("method") == "gibbs" and find_spec("tomotopy") is None
    marks = [pytest.mark.skipif(missing, reason="needs tomotopy, of the extra eval")]
    if kind in RELATIVES:
        marks.append(pytest.mark.slow)
    names = [kind.__name__, *(value for value in settings.values() if isinstance(value, str))]
    return pytest.param(partial(small, kind, **settings), id="-".join(names), marks=marks)


def can_run(case: Any) -> bool:
    return not any(mark.args[0] for mark in case.marks if mark.name == "skipif")


CASES = [case(kind, settings) for kind in MODELS for settings in VARIANTS.get(kind.__name__, [{}])]


def vectors_of(corpus: Corpus) -> np.ndarray:
    """The sum of vectors that belong to the columns of the words."""
    return (corpus.counts @ np.random.default_rng(0).normal(size=(corpus.n_words, 8))).astype(np.float32)


@pytest.fixture(scope="module", autouse=True)
def vectors_by_words():
    """Models that need vectors get some from the words of the documents, whatever form these have."""

    def giving(read: Callable[..., Corpus]) -> Callable[..., Corpus]:
        def given(*args: Any, **options: Any) -> Corpus:
            corpus = read(*args, **options)
            readers = [getattr(option, "__self__", None) for option in options.values()]
            if corpus.vectors is None and any(getattr(each, "needs_vectors", False) for each in readers):
                return corpus.with_vectors(vectors_of(corpus))
            return corpus

        return given

    with pytest.MonkeyPatch.context() as patch:
        for name in ("corpus_of", "corpus_over"):
            patch.setattr(base, name, giving(getattr(base, name)))
        yield


@pytest.fixture(scope="module", params=CASES)
def make(request) -> Make:
    return request.param


@pytest.fixture(scope="module")
def fitted(make) -> TopicModel:
    """Not to be changed."""
    return make().fit(CORPUS)


def scoring_methods(model: TopicModel) -> list[Any]:
    """The methods of perplexity that a model has. A vector would tell the words that completion scores."""
    methods = ["bound"] if model.needs_vectors else ["completion", "bound"]
    return methods if model.predicts_words else []


def learns_in_parts(make: Make) -> None:
    if make().needs_vectors:
        pytest.skip("clusters need all documents at once")
    if getattr(make(), "method", None) == "gibbs":
        pytest.skip("the sampler has no partial_fit")


def assert_distributions(rows: np.ndarray, shape: tuple[int, int]) -> None:
    assert rows.shape == shape
    assert rows.dtype == np.float32
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-4)


def assert_same(one: TopicModel, other: TopicModel, X: Any = COUNTS) -> None:
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


# Data in.

INPUTS = {
    "corpus": CORPUS,
    "texts": TEXTS,
    "array of texts": np.array(TEXTS),
    "tokens": TOKENS,
    "csr array": COUNTS,
    "csr matrix of integers": sparse.csr_matrix(COUNTS.astype(np.int64)),
    "csc": sparse.csc_array(COUNTS),
    "dense": COUNTS.toarray(),
    "nested lists": COUNTS.toarray().tolist(),
}


USUAL = ["corpus", "texts", "csr array"]


def other_form(case: Any, form: str) -> Any:
    """All models read by the same functions: some take the other forms too, and the rest with the slow tests."""
    (make,) = case.values
    marks = [] if make.args[0] in (GSM, Loom, VectorClusters) else [pytest.mark.slow]
    return pytest.param(make, form, id=f"{case.id}-{form}", marks=[*case.marks, *marks])


OTHER_FORMS = [other_form(case, form) for case in CASES for form in INPUTS if form not in USUAL]


@pytest.mark.parametrize("form", USUAL)
def test_takes(make, form):
    assert_fits(make(), INPUTS[form])


@pytest.mark.parametrize(("build", "form"), OTHER_FORMS)
def test_takes_other_forms(build, form):
    assert_fits(build(), INPUTS[form])


def assert_fits(model: TopicModel, X: Any) -> None:
    assert model.fit(X) is model
    n_words = model.n_features_in_
    assert_distributions(model.components_, (N_TOPICS, n_words))
    assert_distributions(model.transform(X), (80, N_TOPICS))
    assert len(model.vocabulary_) == len(model.word_counts_) == n_words
    topics = model.topics(top_n=4)
    assert [len(set(words)) for words in topics] == [4] * N_TOPICS
    assert set().union(*topics) <= set(model.vocabulary_)


def test_sparse_is_dense(make, fitted):
    assert_same(fitted, make().fit(COUNTS.toarray()))
    np.testing.assert_array_equal(fitted.transform(COUNTS), fitted.transform(COUNTS.toarray()))


def test_vocabulary_names_the_columns(make):
    model = make().fit(COUNTS, vocabulary=VOCABULARY)
    assert model.vocabulary_ == VOCABULARY
    np.testing.assert_allclose(model.transform(TOKENS), model.transform(COUNTS), atol=1e-6)


def test_a_corpus_is_matched_by_word(fitted):
    order = np.random.default_rng(0).permutation(30)
    shuffled = Corpus.from_counts(COUNTS[:, order], [VOCABULARY[word] for word in order])
    np.testing.assert_allclose(fitted.transform(shuffled), fitted.transform(CORPUS), atol=1e-6)


def test_leaves_its_input_alone(make):
    data = np.array([2, 0, 1, 3], np.float64)  # an explicit zero, and columns that are not in order
    X = sparse.csr_array((data, np.array([3, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 4))
    before = [array.copy() for array in (X.data, X.indices, X.indptr)]
    make(n_topics=2).fit(X).transform(X)
    for array, earlier in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, earlier)


@pytest.mark.parametrize(("n_topics", "n_docs"), [(2, 80), (10, 5), (2, 1)])
def test_few_topics_and_few_documents(make, n_topics, n_docs):
    model = make(n_topics=n_topics)
    if isinstance(model, GMNTM | VectorClusters) and n_docs < n_topics:
        with pytest.raises(InputError, match=f"`n_topics={n_topics}` needs at least as many documents"):
            model.fit(COUNTS[:n_docs])
        return
    model.fit(COUNTS[:n_docs])
    assert_distributions(model.components_, (n_topics, 30))
    assert_distributions(model.transform(COUNTS), (80, n_topics))


# Rows stay where they are.


def test_documents_without_a_word_keep_their_rows(fitted, caplog):
    if fitted.needs_vectors:
        pytest.skip("documents without a vector are those that get the average shares")
    documents = [TOKENS[0], [], ["unheard", "of"], TOKENS[1]]
    with caplog.at_level(logging.WARNING, "topicloom"):
        theta = fitted.transform(documents)
    assert caplog.messages == [
        "2 of 4 documents contain no word that the model knows; no topic can be assigned to them, and they get "
        "the model's average shares"
    ]
    prior = fitted.network_.prior_theta().detach()
    np.testing.assert_allclose(theta[1:3], np.tile(prior, (2, 1)), rtol=1e-6)
    np.testing.assert_allclose(theta[[0, 3]], fitted.transform(TOKENS[:2]), atol=1e-5)
    assert not np.allclose(theta[0], prior)


def test_empty_documents_teach_nothing(make, fitted):
    rows = np.sort(np.r_[np.arange(80), 0, 17, 79])
    padded = COUNTS[rows].tolil()
    padded[[0, 18, 82]] = 0
    np.testing.assert_array_equal(make().fit(padded.tocsr()).components_, fitted.components_)


def test_a_document_does_not_depend_on_its_neighbours(fitted):
    alone = np.vstack([fitted.transform([tokens]) for tokens in TOKENS[:20]])
    np.testing.assert_allclose(fitted.transform(TOKENS)[:20], alone, atol=1e-5)


def test_no_documents_are_no_rows(fitted):
    assert fitted.transform([]).shape == (0, N_TOPICS)


# Randomness.


def test_a_seed_is_a_model(make, fitted):
    assert_same(fitted, make().fit(CORPUS))
    assert not np.allclose(fitted.components_, make(random_state=1).fit(CORPUS).components_)


def test_fit_begins_anew(make, fitted):
    model = make().fit(COUNTS[:40, :20])
    assert_same(fitted, model.fit(CORPUS))


def test_fit_transform_is_fit_and_transform(make, fitted):
    np.testing.assert_array_equal(make().fit_transform(CORPUS), fitted.transform(CORPUS))


def test_global_random_states_are_neither_read_nor_changed(make, fitted):
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)
    before = random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()  # noqa: NPY002
    model = make().fit(CORPUS)
    assert_same(fitted, model)
    for method in scoring_methods(model):
        model.perplexity(CORPUS, method)
    make(random_state=None).fit(CORPUS)
    after = random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()  # noqa: NPY002
    assert before == after


def test_copies_are_equal(make, fitted):
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    sent = pickle.loads(ForkingPickler.dumps(fitted))  # as multiprocessing sends it
    for other in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted)), joblib.load(file), sent):
        assert_same(fitted, other)
        if fitted.predicts_words:
            assert other.perplexity(CORPUS, method="bound") == fitted.perplexity(CORPUS, method="bound")
    assert_same(sent.fit(CORPUS), fitted)
    assert_same(make().fit(CORPUS), fitted)  # which did not share its memory


# Settings.


def test_clone_and_params(make, fitted):
    cloned = clone(fitted)
    assert cloned.get_params() == fitted.get_params() == make().get_params()
    with pytest.raises(NotFittedError):
        cloned.transform(COUNTS)
    assert cloned.set_params(n_topics=2).fit(CORPUS).components_.shape == (2, 30)


def test_settings_changed_after_fit_wait_for_the_next(make, fitted, tmp_path):
    model = make().fit(CORPUS).set_params(n_topics=5)
    assert_same(model, fitted)
    model.save(tmp_path / "model")
    assert_same(load(tmp_path / "model", device="cpu"), fitted)
    assert model.fit(CORPUS).components_.shape == (5, 30)


def test_names_of_the_topics(fitted):
    name = type(fitted).__name__.lower()
    assert fitted.get_feature_names_out().tolist() == [f"{name}{k}" for k in range(N_TOPICS)]


@pytest.mark.parametrize("name", ["n_components", "num_topics", "k", "nr_topics", "n_topic"])
@pytest.mark.parametrize("kind", MODELS)
def test_other_names_of_n_topics_are_corrected(kind, name):
    with pytest.raises(SettingError, match=f"{kind.__name__} has no setting '{name}'; it is called `n_topics` here"):
        kind(**{name: 5})


@pytest.mark.parametrize(
    ("name", "value"), [("n_topics", "many"), ("n_topics", 3.0), ("random_state", -1), ("device", "abacus")]
)
def test_settings_are_checked_by_fit_and_named(make, name, value):
    with pytest.raises(InputError, match=name) as caught:
        make(**{name: value}).fit(CORPUS)
    assert "\n" not in str(caught.value)


def with_count(value: float) -> np.ndarray:
    counts = COUNTS.toarray()
    counts[2, 1] = value
    return counts


@pytest.mark.parametrize(
    ("X", "settings", "said"),
    [
        pytest.param(CORPUS, {"n_topics": 1}, "`n_topics` of .* it is 1", id="one topic"),
        pytest.param(
            CORPUS,
            {"n_topics": 31},
            "`n_topics=31` is more than the 30 words of the vocabulary",
            id="more topics than words",
        ),
        pytest.param(with_count(-1), {}, "row 2, column 1 is -1", id="negative"),
        pytest.param(with_count(np.nan), {}, "row 2, column 1 is nan", id="nan"),
        pytest.param(with_count(np.inf), {}, "row 2, column 1 is inf", id="infinite"),
        pytest.param(with_count(0.5), {}, "row 2, column 1 is 0.5, .*fractional_counts=True", id="fraction"),
        pytest.param(np.ones((4, 30), complex), {}, "[Cc]omplex", id="complex"),
        pytest.param("one text", {}, "list", id="string"),
        pytest.param(None, {}, "texts .* counts are needed", id="none"),
        pytest.param([None, "a text"], {}, "document 0", id="no text"),
        pytest.param([], {}, "no document", id="nothing"),
        pytest.param(["", ""], {}, "no word", id="texts without words"),
        pytest.param(np.zeros((4, 30)), {}, "every document is empty", id="zeros"),
        pytest.param(np.ones(30), {}, "2D", id="one-dimensional"),
        pytest.param([1, 2, 3], {}, "document 0 is 1, which is neither a text nor a row", id="list of numbers"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_a_sentence(make, X, settings, said):
    model = make(**settings)
    with pytest.raises(InputError, match=said) as caught:
        model.fit(X)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "components_")


NOT_DOCUMENTS = {
    "negative": with_count(-1),
    "fraction": with_count(0.5),
    "too few words": COUNTS[:, :29],
    "string": "a text",
}


@pytest.mark.parametrize("kind", NOT_DOCUMENTS)
def test_what_cannot_be_transformed_is_refused_in_a_sentence(fitted, kind):
    with pytest.raises(InputError) as caught:
        fitted.transform(NOT_DOCUMENTS[kind])
    assert "\n" not in str(caught.value)


def test_fractional_counts(make):
    model = make(fractional_counts=True)
    X = COUNTS * 0.5
    if getattr(model, "method", None) == "gibbs":
        with pytest.raises(InputError, match="whole counts"):
            model.fit(X)
    else:
        assert_distributions(model.fit(X).transform(X), (80, N_TOPICS))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_fit_leaves_the_earlier_model(make, method):
    """The topics of one corpus are never read with the words of another."""
    if method == "partial_fit":
        learns_in_parts(make)
    model = make().fit(CORPUS)
    theta, learned = model.transform(CORPUS), {name: vars(model)[name] for name in vars(model) if name.endswith("_")}
    with pytest.raises(InputError, match="abacus"):
        model.set_params(device="abacus").fit(COUNTS[:, :20])
    np.testing.assert_array_equal(model.transform(CORPUS), theta)
    assert {name: vars(model)[name] for name in vars(model) if name.endswith("_")} == learned
    fresh = make(device="abacus")
    with pytest.raises(InputError, match="abacus"):
        getattr(fresh, method)(CORPUS)
    with pytest.raises(NotFittedError):
        fresh.transform(CORPUS)
    model = fresh.set_params(device="cpu")
    getattr(model, method)(COUNTS[:, :25])
    assert_distributions(model.components_, (N_TOPICS, 25))


# Learning in parts.


def test_partial_fit(make, caplog):
    learns_in_parts(make)
    model = make().partial_fit(CORPUS[:40])
    first, vocabulary, topics = model.perplexity(CORPUS), model.vocabulary_, model.components_.copy()
    for _ in range(20):
        model.partial_fit(CORPUS[40:])
    assert model.perplexity(CORPUS) < 0.98 * first
    assert not np.array_equal(model.components_, topics)
    caplog.clear()
    model.partial_fit([["unheard", "of"], [VOCABULARY[0]] * 3])
    assert model.vocabulary_ == vocabulary
    assert caplog.messages[0] == (
        "`partial_fit` leaves out 2 words that the model does not know (40 % of the tokens): of, unheard"
    )
    assert_distributions(model.transform(COUNTS), (80, N_TOPICS))


@pytest.mark.parametrize("form", ["texts", "tokens", "frame", "corpus", "counts"])
def test_partial_fit_names_the_words_that_it_leaves_out(form, caplog):
    first = [["sea", "ship"], ["fox", "wood"]] * 5
    later = [["sea"] * 40, [f"w{n}" for n in range(12)] + ["w3", "w3", "w7"], ["ship"] * 5]
    counter = Counter(chain.from_iterable(later))
    words = sorted(counter)
    texts, options = [" ".join(tokens) for tokens in later], {"min_df": 1, "max_df": 1.0}
    matrix = np.array([[tokens.count(word) for word in words] for tokens in later])
    X = {
        "texts": lambda: texts,
        "tokens": lambda: later,
        "frame": lambda: pytest.importorskip("pandas").DataFrame({"text": texts}),
        "corpus": lambda: Corpus.from_texts(later, **options),
        "counts": lambda: matrix,
    }[form]()
    model = GSM(2, epochs=1, random_state=0, verbose=False)
    if form in ("texts", "frame"):
        model.partial_fit(Corpus.from_texts([" ".join(tokens) for tokens in first], language="en", **options))
    else:
        model.partial_fit(first)
    for level, given in (("WARNING", X), ("INFO", [["sea"] * 200, ["w"]]), (None, [["sea"]])):
        caplog.clear()
        with caplog.at_level(logging.INFO, "topicloom"):
            model.partial_fit(given, vocabulary=words if given is matrix else None)
        found = [each for each in caplog.records if "leaves out" in each.getMessage()]
        assert [each.levelname for each in found] == [level] * (level is not None)
        if level == "WARNING":
            assert found[0].getMessage() == (
                "`partial_fit` leaves out 12 words that the model does not know (25 % of the tokens): "
                "w3, w7, w0, w1, w10, w11, w2, w4, w5, w6 and more"
            )


def moved(model: TopicModel, components: np.ndarray) -> float:
    return float(np.abs(model.components_ - components).mean())


def test_partial_fit_goes_on_from_what_was_learned(make, tmp_path):
    learns_in_parts(make)
    model, fresh = make(epochs=8).fit(CORPUS), make(epochs=8).partial_fit(CORPUS)
    before = model.components_.copy()
    model.save(tmp_path / "model")
    assert 0 < moved(model.partial_fit(CORPUS[:32]), before) < 0.5 * moved(fresh, before)

    loaded = load(tmp_path / "model", device="cpu")
    if isinstance(loaded, NeuralTopicModel):
        assert 0 < moved(loaded.partial_fit(CORPUS[:32]), before) < 0.5 * moved(fresh, before)
    else:
        with pytest.raises(InputError, match="loaded"):
            loaded.partial_fit(CORPUS[:32])


def test_the_sampler_says_that_it_has_no_partial_fit():
    with pytest.raises(InputError, match='use `method="variational"`'):
        LDA(2, method="gibbs").partial_fit(CORPUS)


# Scores and history.


def test_scores(fitted):
    if "completion" not in scoring_methods(fitted):
        pytest.skip("it has no document completion")
    bound, completion = fitted.perplexity(CORPUS, method="bound"), fitted.perplexity(CORPUS)
    assert 1 < bound < 100
    assert 1 < completion < 100
    assert fitted.score(CORPUS) == pytest.approx(-np.log(completion))
    assert fitted.perplexity(CORPUS, method="bound") == bound
    assert fitted.perplexity(CORPUS) == fitted.perplexity(CORPUS, method="completion") == completion
    with pytest.raises(SettingError, match=r"completion.*bound"):
        fitted.perplexity(CORPUS, method="guess")


class Recorder(Callback):
    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        assert len(model.vocabulary_) == len(model.word_counts_) == len(model.document_counts_)
        self.events.append("start")

    def on_epoch(self, row: dict[str, float]) -> None:
        self.events.append(row)

    def on_end(self) -> None:
        self.events.append("end")


def test_callbacks_see_the_history(make):
    recorder = Recorder()
    model = make().fit(CORPUS, callbacks=[recorder])
    assert recorder.events == ["start", *model.history_, "end"]
    assert len(model.history_) >= 1
    assert all(np.isfinite(np.hstack(list(row.values()))).all() for row in model.history_)


@pytest.mark.parametrize(
    "kind", [kind for kind in MODELS if issubclass(kind, NeuralTopicModel) and not kind.needs_vectors]
)
def test_history_adds_up(kind):
    name = next(name for name in ("kl_weight", "critic_weight", "mmd_weight") if name in settings_of(kind))
    constant = {"kl_warmup": 0.0} if issubclass(kind, VariationalTopicModel) else {}
    history = small(kind, **{name: 0.3}, **constant).fit(CORPUS).history_
    assert [row["epoch"] for row in history] == [1, 2, 3]
    for row in history:
        reconstruction, divergence, weight = row["reconstruction"], row["divergence"], row["divergence_weight"]
        others = {"epoch", "loss", "divergence_weight", "learning_rate", "seconds", "reconstruction", "divergence"}
        others |= {"separation_weight", "concentration", "mmd", "n_topics"}
        opponents = tuple(name.removesuffix("loss") for name in row if name.endswith("_loss"))  # their prefixes
        own = {name: value for name, value in row.items() if not name.startswith(opponents)}
        extras = sum(value for name, value in own.items() if name not in others | CATALOGUE.keys())
        assert weight == (1.0 if "concentration" in row else 0.3)  # the later stages of Loom report the bound
        assert row["loss"] == pytest.approx(reconstruction + weight * divergence + extras, rel=1e-5)


# Files.


def test_saved_is_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model", device="cpu")
    assert_same(fitted, again)
    assert again.topics(5) == fitted.topics(5)
    assert again.history_ == fitted.history_
    assert again.get_params() == fitted.get_params()
    for method in scoring_methods(fitted):
        assert again.perplexity(CORPUS, method) == pytest.approx(fitted.perplexity(CORPUS, method))
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "vocabulary.txt",
    ]


# Sparse from end to end.


class NothingAsLargeAs(TorchDispatchMode):
    """Stops at the first dense tensor of so many elements."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_iter(out):
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
                assert tensor.numel() < self.limit, f"{func} makes a dense tensor of shape {tuple(tensor.shape)}"
        return out


def test_nothing_dense(make, fitted, monkeypatch):
    """Neither the counts nor a single batch of them."""
    if not isinstance(getattr(fitted.network_, "decoder", None), MixtureDecoder | None):
        pytest.skip("a decoder that is no mixture is dense, a batch at a time")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the counts were made dense")

    n_docs, n_words = 64, 20_000
    counts = sparse.random_array((n_docs, n_words), density=1e-3, format="csr", rng=np.random.default_rng(0))
    counts.data = np.ceil(counts.data)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, refuse)
    small = {"epochs": 1, "batch_size": n_docs}
    model = make(**{name: value for name, value in small.items() if name in make().get_params()})
    with NothingAsLargeAs(n_docs * n_words):
        model.fit(counts).transform(counts)
        for method in scoring_methods(model):
            model.perplexity(counts, method)


# What only some models have.


class Spoiler(Callback):
    """Makes losses NaN from some step on."""

    def __init__(self, kind: type[TopicNetwork], last_good_step: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = last_good_step
        whole = kind.players

        def spoilt(loss: Callable[[Batch], Loss | None], batch: Batch) -> Loss | None:
            terms = loss(batch)
            if terms is None or self.left > 0:
                return terms
            return dataclasses.replace(terms, reconstruction=terms.reconstruction * torch.nan)

        def players(network: TopicNetwork) -> list[Player]:
            return [dataclasses.replace(player, loss=partial(spoilt, player.loss)) for player in whole(network)]

        monkeypatch.setattr(kind, "players", players)

    def on_batch(self) -> None:
        self.left -= 1


MAKERS_OF_NEURAL = [
    pytest.param(partial(small, kind), id=kind.__name__) for kind in MODELS if issubclass(kind, NeuralTopicModel)
]


@pytest.mark.parametrize("make_neural", MAKERS_OF_NEURAL)
def test_a_model_whose_training_diverged_keeps_its_last_whole_epoch(make_neural, monkeypatch, interrupted_after):
    model, whole = make_neural(batch_size=20), make_neural(batch_size=20)  # four steps an epoch
    good, seen = (5, 1) if isinstance(model, Loom) else (9, 2)  # an epoch of counting has one step
    with pytest.raises(KeyboardInterrupt):
        whole.fit(CORPUS, callbacks=[interrupted_after(2)])  # a fit of two epochs would plan them otherwise
    with monkeypatch.context() as patch:
        spoiler = Spoiler(type(whole.network_), good, patch)
        with pytest.raises(TrainingDivergedError, match=f"epoch 3, batch {seen}"):
            model.fit(CORPUS, callbacks=[spoiler])
    assert_same(model, whole)
    assert len(model.history_) == 2


@pytest.mark.parametrize("make_neural", MAKERS_OF_NEURAL)
def test_a_model_that_never_trained_is_not_fitted(make_neural, monkeypatch):
    model, kind = make_neural(), type(make_neural().fit(COUNTS[:, :20]).network_)
    with monkeypatch.context() as patch:
        spoiler = Spoiler(kind, 0, patch)
        with pytest.raises(TrainingDivergedError, match="epoch 1, batch 1"):
            model.fit(CORPUS, callbacks=[spoiler])
    with pytest.raises(NotFittedError):
        model.transform(CORPUS)


VECTORS = WordVectors(VOCABULARY, np.random.default_rng(0).normal(size=(30, 4)))
# What is tried of each setting, under the class that brings it. The last of each line is what counts; those before it
# are what it needs. A model that joins adds its own settings here.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "TopicModel": [{"seed_words": {1: ["ban", "kot"]}}],
    "BATM": [
        {"alpha": 1.0},
        {"reconstruction_weight": 0.5},
        {"critic_weight": 3.0},
        {"critic_size": 8},
        {"critic_steps": 2},
    ],
    "DirichletVAE": [
        *({"estimator": name} for name in ("laplace", "rsvi", "weibull", "icdf", "score")),
        {"estimator": "rsvi", "augmentation": 2},
        {"decoder": "product"},
        {"alpha": 1.0},
        {"concentration": 2.0},
        {"sparsity": 0.3},
        {"sparsity": 0.3, "temperature": 1.0},
        {"decoder": "product", "batch_norm": False},
        {"decoder": "product", "batch_norm_eps": 0.1},
        {"code_norm": "none", "divergence": "gammas"},  # the two differ by a constant if the sum of a is given
        {"estimator": "weibull", "code_norm": "fixed"},
        {"theta_dropout": 0.3},
        {"topic_norm": True},
    ],
    "ECRTM": [
        {"alpha": 0.1},
        {"clustering_weight": 1.0},
        {"clustering_sharpness": 2.0},
        {"temperature": 0.5},
    ],
    "ETM": [
        {"prior": "standard"},
        {"alpha": 0.1},
        {"likelihood_floor": 0.1},
        {"start_weights": "linear"},
    ],
    "EmbeddedTopicModel": [
        {"embedding_size": 4},
        {"word_vectors": VECTORS},
        {"word_vectors": VECTORS, "fixed_word_vectors": True},
        {"word_vectors": VECTORS, "whiten": "none"},
    ],
    "NeuralTopicModel": [
        {"hidden_size": 8},
        {"hidden_sizes": (16, 8)},
        {"clip_norm": 0.01},
        {"code_norm_eps": 0.1},
        {"activation": "relu"},
        {"activation": "tanh"},
        {"encoder_input": "raw"},
        {"encoder_input": "l1"},
        {"encoder_input": "tfidf"},
        {"input_dropout": 0.1},
        {"dropout": 0.1},
        {"background": False},
        {"background": "learned"},
        {"code_norm": "shift"},
        {"start": "random"},
        {"learn_shares": False},
        {"learn_shares": True, "shares_prior": 1e5},  # documents have 20.5 tokens, where it weighs 2,400
        {"spare_topics": 0.0},
        {"criterion": "bernoulli"},
        {"target": "tfidf"},
        {"code_norm": "fixed"},
        {"code_norm": "affine"},
        {"code_norm": "none"},
        {"min_diversity": 0.0},
        {"topic_gain": 2.0},
        {"topic_scale": 0.1},
        {"epochs": 2},
        {"batch_size": 16},
        {"learning_rate": 0.05},
        {"schedule": "constant"},
        {"weight_decay": 0.1},
        {"beta1": 0.8},
        {"patience": 1},
        {"patience": 1, "validation_fraction": 0.5},
    ],
    "VariationalTopicModel": [{"kl_weight": 0.5}, {"kl_warmup": 50.0}, {"n_samples": 3}],
    "GMNTM": [
        {"pretrain_epochs": 2},
        {"spread": 1.0},
        {"component_variances": True},
        {"component_separation": 0.0},
        {"balance": 0.0},
        {"decoder": "product"},
        {"decoder": "mlp", "decoder_sizes": (8, 8)},
        {"mutual_distance": 1.0},
        {"component_posterior": "draw"},
        {"pretrain_epochs": 2, "pretrain_criterion": "bernoulli"},
    ],
    "Loom": [
        {"alpha": 1.0},
        {"background_topics": 0.4},
        {"count_power": 1.0},
        {"eta": 0.1},
        {"refine": 0},
        {"sharpness": 1.0},
        {"spare_topics": 0.0},
        {"pretrain_share": 0.7},
        {"sample_share": 0.0},
        {"sample_share": 0.0, "code_norm": "fixed"},  # sampling forgets so small a change, and the next one, too
        {"sample_share": 0.0, "pretrain_share": 0.7, "kl_warmup": 50.0},
    ],
    "NVDM": [{"rotation": "none"}],
    "ProdLDA": [{"min_diversity": 0.5}],
    "WLDA": [
        {"mmd_pairs": "all"},
        {"prior": "gaussian"},
        {"prior": "gmm-std"},
        {"prior": "gmm-ctm"},
        {"alpha": 1.0},
        {"mmd_weight": 10.0},
        {"noise": 0.5},
        {"tau": 0.1},
        {"spread": 1.0},
        {"decoder": "product"},
    ],
    "FASTopic": [
        {"document_sharpness": 1.0},
        {"word_sharpness": 1.0},
        {"temperature": 0.5},
    ],
    "VectorClusters": [
        {"method": "gmm"},
        {"reduction": "pca", "reduced_size": 1},
    ],
    "GSM": [
        {"construction": "stick_breaking"},
        {"prior": "laplace"},
        {"alpha": 0.1},
        {"prior": "standard", "latent_size": 5},
        {"decoder": "mlp"},
        {"decoder": "mlp", "decoder_size": 8},
    ],
    "LDA": [
        {"method": "gibbs"},
        {"epochs": 4},
        {"batch_size": 16},
        {"alpha": 1.0},
        {"method": "gibbs", "alpha": 1.0},
        {"eta": 1.0},
        {"method": "gibbs", "eta": 1.0},
        {"method": "gibbs", "seed_words": {1: ["ban", "kot"]}},
        {"method": "gibbs", "n_jobs": 2},
    ],
}
# Settings without an effect on what is learned: of all models, and of one, whose page says so.
INERT: dict[str, set[str]] = {
    # Tried elsewhere.
    "TopicModel": {
        *("n_topics", "random_state", "device", "fractional_counts", "verbose"),
        *("neighbours", "neighbour_tokens", "infer_with_neighbours"),
    },
    "NeuralTopicModel": {"encoder_reads"},
    "Loom": {"refine"},
    "FASTopic": {"temperature"},  # it changes theta alone
    "VectorClusters": {"reduction", "n_starts", "min_cluster_size", "temperature"},  # tried with it
}
# Values of shared settings that a model refuses, or that mean the same as its default because its code has no variance.
REFUSED: dict[str, list[dict[str, Any]]] = {
    "Loom": [{"target": "tfidf"}, {"code_norm": "fixed"}, {"kl_warmup": 50.0}],
    "DirichletVAE": [{"code_norm": "fixed"}],
    "WLDA": [{"code_norm": "fixed"}],
    "BATM": [{"code_norm": "fixed"}],
    "GaussianBATM": [{"code_norm": "fixed"}],
    "VectorClusters": [{"seed_words": {1: ["ban", "kot"]}}],
}


def own_settings(kind: type) -> set[str]:
    """Those that the class adds to what it is made on."""
    above = {name for base in kind.__mro__[1:] if issubclass(base, TopicModel) for name in settings_of(base)}
    return set(settings_of(kind)) - above


def settings_of(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.init]


def options_of(kind: type[TopicModel]) -> list[dict[str, Any]]:
    """Those of a model that it is made on are tried there; what it has by default would change nothing."""
    bases = [base for base in kind.__mro__ if base is kind or base not in MODELS]
    default = kind().get_params()
    refused = REFUSED.get(kind.__name__, [])
    found = [option for base in bases for option in OPTIONS.get(base.__name__, []) if option not in refused]
    found = [option for option in found if set(option) <= set(default)]  # some models lack shared settings
    return [option for option in found if any(default[name] != value for name, value in option.items())]


FITTED: dict[tuple[str, str], TopicModel] = {}


def fitted_with(kind: type[TopicModel], settings: dict[str, Any]) -> TopicModel:
    """Not to be changed."""
    key = (kind.__name__, repr(settings))
    if key not in FITTED:
        FITTED[key] = small(kind, **settings).fit(CORPUS)
    return FITTED[key]


def setting_case(kind: type[TopicModel], option: dict[str, Any]) -> Any:
    """Settings that models share are always tried on two of them; on the others with the slow tests."""
    own = option in OPTIONS.get(kind.__name__, [])
    marks = () if own or kind in (GSM, Loom) else pytest.mark.slow
    return pytest.param(kind, option, id=f"{kind.__name__}-{option}", marks=marks)


TRIED = [setting_case(kind, option) for kind in MODELS for option in options_of(kind)]


@pytest.mark.parametrize(("kind", "option"), TRIED)
def test_every_setting_counts(kind, option, tmp_path):
    if "gibbs" in option.values():
        pytest.importorskip("tomotopy")
    *needed, tried = option
    plain = fitted_with(kind, {name: option[name] for name in needed})
    model = fitted_with(kind, option)
    assert_distributions(model.components_, (N_TOPICS, 30))
    assert all(np.isfinite(np.hstack(list(row.values()))).all() for row in model.history_)
    same = np.allclose(model.components_, plain.components_, rtol=1e-4)
    assert same == (tried in INERT.get(kind.__name__, ())), f"{tried} of {kind.__name__}, see INERT"
    model.save(tmp_path / "model")
    assert_same(model, load(tmp_path / "model", device="cpu"))


@pytest.mark.parametrize("kind", [TopicModel, NeuralTopicModel, VariationalTopicModel, *MODELS])
def test_every_setting_is_tried(kind):
    tried = {[*option][-1] for option in OPTIONS.get(kind.__name__, [])} | INERT.get(kind.__name__, set())
    missing = own_settings(kind) - tried
    assert not missing, f"tests/test_contract.py: OPTIONS[{kind.__name__!r}] should try {', '.join(sorted(missing))}"
    unknown = tried - set(settings_of(kind))
    assert not unknown, f"tests/test_contract.py: {kind.__name__} has no setting {', '.join(sorted(unknown))}"


@pytest.mark.parametrize("alpha", [0, -0.5])
@pytest.mark.parametrize("kind", [kind for kind in MODELS if "alpha" in settings_of(kind)])
def test_alpha_is_above_zero(kind, alpha):
    says = f"`alpha` of {kind.__name__} should be greater than 0; it is {alpha}"
    with pytest.raises(SettingError, match=says) as caught:
        small(kind, alpha=alpha).fit(CORPUS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["alpha", "eta"])
def test_variational_lda_has_a_limit_of_its_own(name):
    with pytest.raises(SettingError, match=f"{name} of LDA.* should be at most 1; it is 2.0"):
        small(LDA, **{name: 2.0}).fit(CORPUS)


@pytest.mark.parametrize("kind", [BATM, WLDA])
def test_models_that_draw_no_theta_refuse_a_sample_count(kind):
    with pytest.raises(SettingError, match=f"{kind.__name__} has no setting 'n_samples'"):
        kind(n_samples=2)


@pytest.mark.parametrize("settings", [{"embedding_size": 4}, {"decoder": "product"}])
def test_gsm_does_not_become_another_model(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        GSM(3, **settings).fit(CORPUS)


def test_a_vocabulary_is_refused_where_there_are_no_columns() -> None:
    with pytest.raises(InputError, match="names the columns of a matrix"):
        GSM(2).fit([["a", "b"], ["b", "c"]], vocabulary=["a", "b", "c"])


def test_partial_fit_matches_another_vocabulary_word_by_word() -> None:
    counts = np.array([[3, 1, 0], [0, 1, 3], [2, 0, 2]] * 10)
    words = ["x", "y", "z"]
    ours = GSM(2, random_state=0).partial_fit(counts, vocabulary=words)
    theirs = clone(ours).partial_fit(counts, vocabulary=words)
    ours.partial_fit(counts, vocabulary=words)
    theirs.partial_fit(counts[:, ::-1], vocabulary=words[::-1])
    np.testing.assert_array_equal(ours.components_, theirs.components_)


def test_weights_have_a_completion() -> None:
    weights = np.full((4, 3), 0.5)
    model = GSM(2, epochs=1, random_state=0, fractional_counts=True).fit(weights)
    assert 1 < model.perplexity(weights) == model.perplexity(weights) < 10
    assert model.log_likelihood(weights)[1].sum() < weights.sum()


def test_grid_search_chooses_by_completion() -> None:
    search = GridSearchCV(GSM(3, random_state=0), {"epochs": [1, 30]}, cv=2).fit(CORPUS.counts)
    assert search.best_params_ == {"epochs": 30}
    assert search.score(CORPUS.counts) == pytest.approx(-np.log(search.best_estimator_.perplexity(CORPUS.counts)))


def test_documents_without_a_token_to_score_are_refused() -> None:
    model = GSM(2, epochs=1, random_state=0).fit(CORPUS)
    counts = np.eye(1, len(model.vocabulary_))
    with pytest.raises(InputError, match="no token is left to score"):
        model.perplexity(counts)  # a fixed seed gives the only token to the half that is observed
    assert model.perplexity(counts, method="bound") > 1


def test_top_n_is_a_whole_number() -> None:
    with pytest.raises(InputError, match="whole number from 1"):
        GSM(2, epochs=1, random_state=0).fit(np.ones((4, 3))).topics(2.5)


def test_partial_fit_goes_on_after_early_stopping() -> None:
    model = GSM(3, epochs=6, patience=2, random_state=0).fit(CORPUS)
    before = model.components_
    assert np.abs(model.partial_fit(CORPUS).components_ - before).max() > 1e-4


@pytest.mark.parametrize("kind", [GSM, ProdLDA, WLDA, BATM, GMNTM, NVDM])
def test_the_bound_is_by_the_criterion_of_training(kind) -> None:
    model = kind(3, epochs=3, random_state=0, criterion="bernoulli").fit(CORPUS)
    same = kind(3, epochs=3, random_state=0).fit(CORPUS)
    same.network_.load_state_dict(model.network_.state_dict())
    assert model.perplexity(CORPUS) == pytest.approx(same.perplexity(CORPUS))  # of the tokens, in both models
    presence, tokens = evidence_bound(model.network_, CORPUS), evidence_bound(same.network_, CORPUS)
    assert np.abs(presence - tokens).min() > 1e-3
    same.network_.criterion = "bernoulli"
    np.testing.assert_array_equal(evidence_bound(same.network_, CORPUS), presence)
    for method in (model.perplexity, model.log_likelihood):
        with pytest.raises(SettingError, match=r'a criterion other than "cross_entropy".*use `method="completion"`$'):
            method(CORPUS, method="bound")


def test_the_bound_of_loom_follows_its_stage() -> None:
    model = Loom(3, epochs=6, random_state=0, criterion="bernoulli").fit(CORPUS)
    assert 1 < model.perplexity(CORPUS, method="bound") < 100


def test_a_latent_size_needs_the_standard_prior() -> None:
    with pytest.raises(SettingError, match=r'^`latent_size` needs `prior="standard"`'):
        GSM(3, latent_size=5, prior="laplace").fit(CORPUS)
    with pytest.raises(SettingError, match=r'^`latent_size` needs `prior="standard"`'):
        GSM(3, latent_size=5, alpha=0.1).partial_fit(CORPUS)
    with pytest.raises(SettingError, match=r'^`alpha` is a parameter of `prior="laplace"`'):
        GSM(3, prior="standard", alpha=0.1).fit(CORPUS)
    model = GSM(3, latent_size=5, epochs=1, random_state=0).fit(CORPUS)
    topics = model.components_
    with pytest.raises(SettingError, match="latent_size"):
        model.set_params(prior="laplace").fit(CORPUS)
    assert model.components_ is topics  # the earlier fit is kept


def test_partial_fit_holds_the_settings_to_their_limits() -> None:
    model = GSM(3, random_state=0).partial_fit(CORPUS)
    with pytest.raises(SettingError, match="batch_size"):
        model.set_params(batch_size=-3).partial_fit(CORPUS)
    with pytest.raises(SettingError, match="n_topics is 4, but the model has 3 topics; set it back"):
        model.set_params(batch_size=None, n_topics=4).partial_fit(CORPUS)


def test_a_data_frame_keeps_its_columns_through_a_file(tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CORPUS.counts.toarray(), columns=CORPUS.vocabulary)
    GSM(3, epochs=2, random_state=0).fit(frame).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.vocabulary_ == list(CORPUS.vocabulary)
    with pytest.raises(InputError, match="feature names"):
        loaded.transform(frame[frame.columns[::-1]])


def test_partial_fit_refuses_a_vocabulary_for_texts() -> None:
    tokens = [["a", "b"], ["b", "c"]]
    model = GSM(2, random_state=0).partial_fit(tokens * 10)
    with pytest.raises(InputError, match="names the columns of a matrix"):
        model.partial_fit(tokens, vocabulary=["a", "b", "c"])


NEURAL = params(kind for kind in MODELS if issubclass(kind, NeuralTopicModel))


@pytest.mark.parametrize("kind", NEURAL)
def test_partial_fit_continues_the_network_of_a_loaded_model(kind, tmp_path):
    model = small(kind).fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu").set_params(learning_rate=1e-12)
    if "hidden_size" in loaded.get_params():
        loaded.set_params(hidden_size=5)
    loaded.partial_fit(CORPUS)
    assert [row["epoch"] for row in loaded.history_] == [1, 2, 3, 4]
    learned = dict(model.network_.named_parameters())
    for name, weights in loaded.network_.named_parameters():
        if not name.startswith("critic."):  # its norms are limited after each step, whatever the learning rate
            torch.testing.assert_close(weights, learned[name], atol=1e-3, rtol=0)
    # Loom's topics are counts, to which those of the stream are added. Those of ECRTM contain batch statistics.
    if kind not in (ECRTM, Loom):
        np.testing.assert_allclose(loaded.components_, model.components_, atol=1e-4)


@pytest.mark.parametrize("kind", NEURAL)
def test_a_fitted_model_does_not_heed_settings_made_later(kind):
    model = small(kind).fit(CORPUS)
    before = model.transform(CORPUS)
    numbers = {name: 2 * value + 1 for name, value in model.get_params().items() if isinstance(value, float)}
    model.set_params(**{name: value for name, value in numbers.items() if name != "n_topics"})
    np.testing.assert_array_equal(model.transform(CORPUS), before)


@pytest.mark.parametrize("kind", NEURAL)
def test_a_model_that_begins_with_a_stream_learns_different_topics(kind):
    model = small(kind)
    for _ in range(3):
        model.partial_fit(CORPUS)
    assert float(np.ptp(model.components_, axis=0).max()) > 1e-3


def test_a_fit_goes_on_from_a_state_or_a_directory(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; give a directory for the checkpoints"):
        GSM(2).fit(np.ones((4, 3)), checkpoint=tmp_path / "file")
    with pytest.raises(SettingError, match=r"`resume_from` should be what `state\.snapshot\(\)` returned; it is 3"):
        GSM(2).fit(np.ones((4, 3)), resume_from=3)
