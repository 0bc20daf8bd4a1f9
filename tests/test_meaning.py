"""Documents with vectors after training: search by meaning, new texts, maps, the page and the service."""

from __future__ import annotations

import logging
import re
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

import topicloom as tl
from command_line import call, refused, shown
from packed import unpack
from topicloom.embeddings.neighbours import VectorIndex
from topicloom.errors import InputError
from topicloom.reports.explorer.page import PageOptions, explorer_page, page_parts
from topicloom.topics.positions import document_positions
from topicloom.topics.typical import TypicalDocuments

GROUPS = ["cat dog mouse pet paw", "rain sun snow wind hail", "bank loan price debt cash"]
NEW_WORDS = ["kitten", "drizzle", "mortgage"]  # of the same meanings, which no document has
ENCODER = f'''
GROUPS = {GROUPS!r}
NEW_WORDS = {NEW_WORDS!r}


def encode(texts):
    """The number of words of each group, and something of its own for each text."""
    words = [text.split() for text in texts]
    meanings = [group.split() + [new] for group, new in zip(GROUPS, NEW_WORDS)]
    return [[sum(word in group for word in each) for group in meanings] + [0.01 * len(each)] for each in words]
'''


def documents(seed=0, n_docs=90):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(GROUPS[row % 3].split(), 3, replace=False)) for row in range(n_docs)]


def encode(texts):
    names = {}
    exec(ENCODER, names)
    return names["encode"](texts)


@pytest.fixture(scope="module")
def corpus():
    return tl.Corpus.from_texts(documents(), encoder=encode, language="en", min_df=1)


@pytest.fixture(scope="module")
def model(corpus):
    return tl.GSM(3, epochs=15, random_state=0).fit(corpus)


@pytest.fixture(scope="module")
def topics(model, corpus):
    return tl.Topics(model, corpus)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose encoder is a function in a module, and one whose vectors are from a file."""
    place = tmp_path_factory.mktemp("runs")
    (place / "meanings.py").write_text(ENCODER, "utf-8")
    (place / "news.txt").write_text("\n".join([*documents(), "kitten"]) + "\n", "utf-8")
    np.save(place / "vectors.npy", np.array(encode([*documents(), "kitten"]), np.float32))
    patch = pytest.MonkeyPatch()
    patch.chdir(place)
    patch.syspath_prepend(str(place))
    options = ("--model", "gsm", "--topics", "3", "--epochs", "15", "--language", "en", "--min-df", "2", "--quiet")
    options += ("--no-explorer", "--doc-topics", "none")
    shown("train", "news.txt", *options, "--encoder", "meanings:encode", "--out", "named")
    shown("train", "news.txt", *options, "--vectors", "vectors.npy", "--out", "given")
    yield place
    patch.undo()


def cosines(vectors, query):
    vectors, query = np.asarray(vectors, np.float64), np.asarray(query, np.float64)
    return vectors @ query / np.linalg.norm(vectors, axis=1).clip(1e-12) / np.linalg.norm(query)


def test_similarities_of_all_documents_against_brute_force():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 7)).astype(np.float16)
    vectors[3], vectors[10:20] = 0, vectors[9]
    index, query = VectorIndex.of(vectors), rng.normal(size=7).astype(np.float16)
    found = index.similarities(query)
    np.testing.assert_allclose(found, cosines(vectors, query), atol=1e-6)
    ids, best = index.nearest(query[None], 20)
    np.testing.assert_array_equal(found[ids[0]], best[0])  # to the bit
    assert (found[3], index.is_directed.sum()) == (0, 499)
    assert not index.similarities(np.zeros(7, np.float32)).any()
    with pytest.raises(InputError, match="queries of shape"):
        index.similarities(query[:3])


def test_documents_are_found_by_meaning(topics, corpus):
    found = topics.find_documents("a kitten", 4)
    expected = cosines(corpus.vectors, encode(["a kitten"])[0])
    np.testing.assert_allclose(found["similarity"], np.sort(expected)[::-1][:4], atol=1e-3)
    assert all(row % 3 == 0 for row in found["document"])
    like = topics.find_documents(7, 200)
    assert 7 not in like["document"]
    assert len(like) == 89
    main = topics.documents.main_topics
    own = topics.find_documents("a kitten", 200, topic=main[0])
    assert all(topics.documents.theta[row, main[0]] > 1 / 3 for row in own["document"])
    with pytest.raises(InputError, match=r"gives 'zzz.*no vector|there is nothing"):
        topics.find_documents(" ")


def test_topics_of_words_that_no_document_has(topics, caplog):
    main = [topics.documents.main_topics[group] for group in range(3)]
    assert len(set(main)) == 3
    for new, expected in zip(NEW_WORDS, main, strict=True):
        assert topics.find_topics(new)["topic"][0] == expected
        assert topics.topics_of(new).topics[0][0] == expected
    assert "left out" not in caplog.text


def test_a_model_of_counts_borrows_topics_of_near_documents(corpus):
    model = tl.LDA(3, neighbour_tokens=0, random_state=0, epochs=30).fit(corpus)
    topics = tl.Topics(model, corpus)
    assert not model.reads_vectors
    assert topics.find_topics("drizzle")["topic"][0] == topics.documents.main_topics[1]
    with pytest.raises(InputError, match="the model knows no word of 'zzz'"):
        tl.Topics(model, tl.Corpus.from_texts(documents(), language="en", min_df=1)).find_topics("zzz")


def test_diverse_documents_differ_in_their_vectors():
    theta = np.tile([0.9, 0.1], (5, 1)).astype(np.float32)
    counts = tl.Corpus.from_counts([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1]]).counts
    vectors = np.array([[1, 0.8, 0], [1, 0.79, 0], [1, 0, 0.8], [1, 0, 0.79], [-1, 0, 0]], np.float32)
    beta, none = np.array([[0.3, 0.29, 0.28, 0.13], [0.1, 0.1, 0.1, 0.7]]), np.zeros(5, np.bool_)
    by_words = TypicalDocuments(theta, none, counts, beta, np.full(4, 100.0))
    assert by_words.diverse(0, 2).tolist() == [0, 1]
    by_vectors = TypicalDocuments(theta, none, counts, beta, np.full(4, 100.0), vectors)
    first, second = by_vectors.diverse(0, 2).tolist()
    assert {first, second} & {0, 1}
    assert {first, second} & {2, 3}  # the pairs 0, 1 and 2, 3 have nearly the same direction


def test_documents_without_a_known_word_have_topics_by_vector(run):
    found = tl.Topics.from_run(run / "named", allow="meanings")
    assert (found.corpus.is_empty[90], found.documents.empty[90]) == (True, False)
    assert found.documents.main_topics[90] == found.documents.main_topics[0]
    again = found.model.infer(found.corpus)
    np.testing.assert_array_equal(found.documents.empty, again.empty)
    blank = tl.Corpus.from_counts([[0] * found.corpus.n_words], found.vocabulary, vectors=[[0, 0, 0, 0]])
    assert found.model.infer(blank).empty.tolist() == [True]


def test_one_warning_says_that_words_decide(run, caplog):
    model = tl.load(run / "given")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            model.transform(["cat dog", "snow"])
    assert [record.message for record in caplog.records].count(
        "the documents have no vectors, so their topics are inferred from their words alone"
    ) == 1
    said = call("infer", "given", "news.txt", "--no-texts")
    assert (said.exit_code, said.stderr.count("words alone")) == (0, 1)


def test_validation_documents_may_lack_vectors(corpus, caplog):
    plain = tl.Corpus.from_counts(corpus.counts, corpus.vocabulary)
    given = tl.Corpus.from_counts(corpus.counts, corpus.vocabulary, vectors=corpus.vectors)
    with caplog.at_level(logging.WARNING):
        model = tl.GSM(3, epochs=2, random_state=0).fit(given, validation=plain)
    assert np.isfinite([row["validation_loss"] for row in model.history_]).all()
    assert caplog.text.count("words alone") == 1


def test_an_encoder_given_later_must_have_the_size(run):
    model = tl.load(run / "given", encoder=encode)
    np.testing.assert_allclose(model.transform(["kitten"]).argmax(), model.transform(["cat dog"]).argmax())
    for read in (tl.load, tl.Topics.from_run):
        with pytest.raises(InputError, match=r"documents (had|have) 4 numbers"):
            read(run / "given", encoder=lambda texts: [[1, len(text)] for text in texts])


@pytest.mark.parametrize("name", ["named", "given"])
def test_a_run_reads_texts_by_the_encoder_given(run, name, tmp_path, caplog):
    topics = tl.Topics.from_run(run / name, encoder=encode)
    expected = tl.load(run / name, encoder=encode).transform(["kitten"])
    found = {row["topic"]: row["weight"] for row in topics.find_topics("kitten")}
    np.testing.assert_allclose([found[topic] for topic in range(3)], expected[0], atol=1e-6)
    with caplog.at_level(logging.WARNING):
        added = tl.update(run / name, ["a kitten"], encoder=encode, out=tmp_path / "run").topics.corpus
    np.testing.assert_allclose(added.vectors[-1], encode(["a kitten"])[0], atol=1e-3)
    assert "words alone" not in caplog.text


def test_commands_find_documents_by_meaning(run):
    assert "cat" in shown("find", "given", "kitten", "--encoder", "meanings:encode", "--n", "1")
    assert "mouse" in shown("find", "named", "kitten", "--documents", "--allow", "meanings", "--n", "30")
    assert "similarity" in shown("find", "given", "3", "--documents")
    refused("find", "given", "kitten", "--documents", says=["it is not known which encoder made the vectors"])
    refused("find", "named", "kitten", "--documents", says=["if you trust it"])


def test_a_message_is_printed_once_if_the_encoder_logs(run, monkeypatch):
    (run / "logs.py").write_text("import logging\nlogging.basicConfig(level=logging.INFO)\n" + ENCODER, "utf-8")
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of its own
    monkeypatch.setattr(logging.getLogger("topicloom"), "propagate", True)
    said = call("infer", "given", "news.txt", "--encoder", "logs:encode", "--out", "once.csv")
    assert (said.exit_code, said.stderr.count("wrote once.csv")) == (0, 1)


def test_a_run_with_neighbours_is_trained_further(run):
    before = tl.load(run / "given").history_
    shown("train", "--continue", "given", "--epochs", "+1", "--no-explorer", "--quiet")
    assert len(tl.load(run / "given").history_) == len(before) + 1


def test_documents_are_placed_by_their_vectors():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=1500)
    vectors = (np.eye(3)[group] + rng.normal(scale=0.05, size=(1500, 3))).astype(np.float16)
    vectors[:5] = 0
    theta = rng.dirichlet(np.ones(4), size=1500).astype(np.float32)
    theta[:5] = theta[5]
    placed = document_positions(theta, vectors)
    assert (placed.dtype, np.isfinite(placed).all(), placed.min() >= 0, placed.max() <= 1) == (np.float32, True, 1, 1)
    apart = ((placed[:, None] - placed[None, 5:]) ** 2).sum(-1)
    apart[np.arange(5, 1500), np.arange(1495)] = np.inf
    nearest = 5 + apart.argmin(1)
    assert (group[5:] == group[nearest[5:]]).mean() > 0.98


def test_page_and_picture_say_what_the_map_shows(topics):
    parts = {name: unpack(text) for name, text in page_parts(topics, PageOptions()).items()}
    assert (parts["core"][0]["map_by"], parts["core"][0]["infers_by"]) == ("vectors", "words")
    plain = tl.Corpus.from_texts(documents(), language="en", min_df=1)
    without = tl.Topics(tl.LDA(3, epochs=2).fit(plain), plain)
    assert unpack(page_parts(without, PageOptions())["core"])[0]["map_by"] == "topics"
    page = explorer_page(topics)
    assert "drawn from the vectors of the documents" in page
    assert "地图按文档的向量绘制" in page
    notes = [
        " ".join(text.get_text() for text in tl.figures.draw(topics, "map", language=language)[0].texts)
        for language in ("en", "zh")
    ]
    assert "vectors of their texts" in re.sub(r"\s+", " ", notes[0])
    assert "文本向量" in re.sub(r"\s", "", notes[1]) or "vectors" in notes[1]  # without a Chinese font
    with pytest.raises(InputError, match="the documents have no vectors"):
        tl.figures.draw(without, "map", space="vectors")


def test_the_service_searches_by_meaning(run):
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    from topicloom.service import Live, make_app

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Starlette recommends the successor of httpx
        from starlette.testclient import TestClient

    live = Live.open(run / "named", allow=["meanings"])
    with TestClient(make_app(live), base_url="http://localhost") as client:
        assert client.get("/api/topics").json()["has_meaning"] is True
        found = client.get("/api/documents", params={"like": "a kitten", "limit": 7}).json()
        assert all(row["row"] % 3 == 0 for row in found["documents"])
        expected = np.sort(cosines(live.state.topics.corpus.vectors, encode(["a kitten"])[0]))[::-1]
        np.testing.assert_allclose([row["similarity"] for row in found["documents"]], expected[:7], atol=1e-3)
        assert found["total"] == 91
        rows = [row["row"] for row in found["documents"]]
        while found["next"] is not None:
            after = {"like": "a kitten", "limit": 40, "after": found["next"]}
            found = client.get("/api/documents", params=after).json()
            rows += [row["row"] for row in found["documents"]]
        assert sorted(rows) == list(range(91))
        both = client.get("/api/documents", params={"like": "a kitten", "q": "snow"}).json()
        assert all("snow" in row["text"] for row in both["documents"])
        assert client.post("/api/infer", json={"texts": ["kitten"]}).json()["documents"][0]["empty"] is False
        while 'http-equiv="refresh"' in (page := client.get("/")).text:  # on a busy machine, it is not made yet
            pass
        assert '"meaning":true' in str(unpack(page_core(page.text))[0]).replace("'", '"').replace(": True", ":true")
    live.close()
    with TestClient(make_app(Live.open(run / "given")), base_url="http://localhost") as client:
        answer = client.get("/api/documents", params={"like": "a kitten"})
        assert (answer.status_code, "cannot be searched by meaning" in answer.json()["error"]) == (404, True)


def page_core(page):
    return dict(re.findall(r'id="part-(\w+)">([^<]*)<', page))["core"]


def test_maps_for_other_programs_are_of_the_vectors(topics, corpus):
    near = corpus.vectors.astype(float)
    near /= np.linalg.norm(near, axis=1, keepdims=True).clip(1e-9)
    expected = PCA(2, svd_solver="full").fit_transform(near)
    found = topics.to_datamapplot(layout="pca")["coordinates"]
    np.testing.assert_allclose(pdist(found), pdist(expected), atol=1e-5)
    by_theta = topics.to_datamapplot(layout="pca", space="theta")["coordinates"]
    roots = PCA(2, svd_solver="full").fit_transform(np.sqrt(topics.documents.theta.astype(float)))
    np.testing.assert_allclose(pdist(by_theta), pdist(roots), atol=1e-5)
    np.testing.assert_allclose(topics.to_topicwizard()["document_representation"], near, atol=1e-5)

    lacking = corpus.vectors.copy()
    lacking[[0, 4]] = 0
    places = tl.Topics(topics.model, corpus.with_vectors(lacking)).to_datamapplot()["coordinates"]
    middles = np.array([places[group::3][2:].mean(axis=0) for group in range(3)])
    for row in (0, 4):  # beside documents of their topics
        assert np.linalg.norm(middles - places[row], axis=1).argmin() == row % 3
    without = tl.Topics(tl.LDA(2, epochs=1).fit(documents()), documents())
    assert without.to_datamapplot(layout="pca")["coordinates"].shape == (90, 2)
    with pytest.raises(InputError, match="have no vectors, so they cannot be placed"):
        without.to_datamapplot(space="vectors")
    with pytest.raises(InputError, match="one of auto, theta, vectors"):
        without.to_datamapplot(space="latent")


def test_a_reference_keeps_the_vectors_that_it_has(model, corpus):
    assert model.documents(corpus, words_only=True).vectors is corpus.vectors
    assert model.documents(documents(), words_only=True).vectors is None  # so nothing is encoded
    found = model.perplexity(documents())
    assert found == pytest.approx(model.perplexity(corpus), rel=1e-6)  # a completion reads no vectors
