"""The documents that users give to models, in all their forms: recognised, checked and converted to a corpus."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

import topicloom as tl
from topicloom.corpus import Corpus
from topicloom.corpus.inputs import corpus_of, corpus_over, kind_of
from topicloom.errors import InputError
from topicloom.text import make_tokenizer

TEXTS = ["cat and dog", "stocks and rates", "dog and cat", "rates and stocks", ""] * 8


@pytest.fixture(scope="module")
def model() -> tl.TopicModel:
    corpus = Corpus.from_texts(TEXTS, min_df=1, max_df=1.0)
    return tl.GSM(2, epochs=2, hidden_size=8, random_state=0).fit(corpus)


def test_kinds():
    pandas = pytest.importorskip("pandas")
    assert kind_of(Corpus.from_counts([[1, 2]])) == "corpus"
    for counts in ([[1, 2]], np.ones((2, 2)), sparse.eye_array(3), pandas.DataFrame({"a": [1], "b": [True]})):
        assert kind_of(counts) == "counts"
    for texts in (["a"], [["a", "b"]], pandas.Series(["a"]), np.array(["a"]), iter(["a"]), []):
        assert kind_of(texts) == "texts"
    assert kind_of(pandas.DataFrame({"text": ["a"]})) == "frame"
    for other in ("text", 3, None, {"a": 1}):
        with pytest.raises(InputError, match=r"\[text\]|are needed"):
            kind_of(other)


def test_inference_brings_the_fields_along(model):
    corpus = Corpus.from_texts(TEXTS[:5], min_df=1, max_df=1.0, ids=list("abcde"), labels=[*list("xyxy"), None])
    found = model.infer(corpus)
    assert (found.ids, found.labels, list(found.texts)) == (list("abcde"), ["x", "y", "x", "y", ""], TEXTS[:5])
    assert found.empty.tolist() == [False] * 4 + [True]
    assert found.main_topics[4] is None
    np.testing.assert_array_equal(found.theta, model.transform(corpus))
    np.testing.assert_allclose(found.shares, found.theta[:4].mean(0))
    part = found[[4, 1]]
    assert (part.ids, part.empty.tolist()) == (["e", "b"], [True, False])
    assert list(model.infer(TEXTS[:2]).texts) == TEXTS[:2]
    assert [len(part) for part in found.parts(2)] == [2, 2, 1]


def test_frames_of_texts_are_documents(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS[:5], "label": ["x"] * 5, "n": range(5)})
    found = model.infer(frame)
    np.testing.assert_array_equal(found.theta, model.transform(TEXTS[:5]))
    assert found.labels == ["x"] * 5
    fitted = tl.GSM(2, epochs=1, hidden_size=8).fit(pandas.DataFrame({"text": TEXTS}))
    assert "dog" in fitted.vocabulary_
    with pytest.raises(InputError, match=r"no column 'text' .its columns: body.*from_frame"):
        model.fit(pandas.DataFrame({"body": TEXTS}))


def test_columns_that_are_words_are_not_read_in_another_order(model):
    pandas = pytest.importorskip("pandas")
    words, counts = model.vocabulary_, model.encode(TEXTS[:4])
    frame = pandas.DataFrame(counts.toarray(), columns=words)
    expected = model.transform(counts)
    np.testing.assert_array_equal(model.transform(frame), expected)
    np.testing.assert_array_equal(model.transform(frame.to_numpy()), expected)
    np.testing.assert_array_equal(model.transform(pandas.DataFrame(counts.toarray())), expected)  # columns 0, 1, ...
    for other in (frame[words[::-1]], frame[words[:2]], frame.rename(columns={words[0]: "unheard"})):
        with pytest.raises(InputError, match=r"not the words of `vocabulary_` in their order; give Corpus.from_counts"):
            model.transform(other)
    backwards = frame[words[::-1]]
    np.testing.assert_array_equal(model.transform(Corpus.from_counts(backwards, backwards.columns)), expected)


@pytest.mark.parametrize(
    ("texts", "which"), [([""], "the document contains"), (["cat", ""], "1 of 2 documents contains")]
)
def test_a_single_empty_document_is_singular(model, texts, which, caplog):
    model.transform(texts)
    assert caplog.messages == [
        f"{which} no word that the model knows; no topic can be assigned to it, and it gets the model's average shares"
    ]


def test_columns_of_one_name_are_refused(model):
    pandas = pytest.importorskip("pandas")
    for read in (tl.GSM(2, epochs=1).fit, model.transform, Corpus.from_frame):
        with pytest.raises(InputError, match="the data frame has several columns 'a'; give each a name of its own"):
            read(pandas.DataFrame(np.ones((2, 3)), columns=["b", "a", "a"]))
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="the data frame has several columns 'text'"):
        Corpus.from_frame(arrow.table([arrow.array(["x"])] * 2, names=["text", "text"]))


def test_sparse_columns_of_a_data_frame_are_counts(model):
    pandas = pytest.importorskip("pandas")
    counts = model.encode(TEXTS[:4])
    frame = pandas.DataFrame(counts.toarray(), columns=model.vocabulary_)
    frame = frame.astype(pandas.SparseDtype(np.float32, 0))  # from_spmatrix of pandas 3.0 makes NaN of every zero
    assert kind_of(frame) == "counts"
    np.testing.assert_array_equal(model.transform(frame), model.transform(counts))
    assert corpus_of(frame).counts.toarray().tolist() == counts.toarray().tolist()
    fitted = tl.GSM(2, epochs=1, hidden_size=8, random_state=0).fit(frame)
    assert fitted.vocabulary_ == model.vocabulary_
    assert kind_of(pandas.DataFrame({"text": pandas.arrays.SparseArray(["a", "b"], fill_value="")})) == "frame"
    assert kind_of(pandas.DataFrame({"text": ["a"], "sparse": [1]})) == "frame"
    assert kind_of(pandas.DataFrame({"a": pandas.interval_range(0, 2)})) == "frame"


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy", "pyarrow"])
def test_a_column_is_read_as_its_data_frame_is(model, library, caplog):
    module = pytest.importorskip(library)
    texts = [text or None for text in TEXTS]
    kinds = {"numpy": lambda texts: np.array(texts, object), "pyarrow": lambda texts: module.chunked_array([texts])}
    column = kinds[library](texts) if library in kinds else module.Series(texts)
    fitted = tl.GSM(2, epochs=1, hidden_size=8, random_state=0).fit(column)
    assert "8 of 40 documents have no word of the vocabulary; they keep their rows" in caplog.messages
    np.testing.assert_array_equal(fitted.transform(column), fitted.transform(TEXTS))
    np.testing.assert_array_equal(model.transform(column), model.transform(TEXTS))
    if library != "numpy":
        frame = module.table({"text": texts}) if library == "pyarrow" else module.DataFrame({"text": texts})
        np.testing.assert_array_equal(fitted.transform(column), fitted.transform(frame))
    assert list(Corpus.from_texts(column, min_df=1, max_df=1.0).texts) == TEXTS
    tokens = pytest.importorskip("pandas").Series([["cat", "dog"], None, ["dog", "cat"]])
    assert Corpus.from_texts(tokens, min_df=1, max_df=1.0).is_empty.tolist() == [False, True, False]
    with pytest.raises(InputError, match="document 1: expected a text, got a NoneType"):
        model.transform(["cat", None])  # in a list, it is a mistake


def test_arrow_columns_without_texts_and_lazy_frames_are_refused(model, recwarn):
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    with pytest.raises(InputError, match="document 0 is 1, which is neither"):
        model.transform(arrow.array([1, 2]))
    with pytest.raises(InputError, match="the column is empty"):
        model.transform(arrow.array([], arrow.string()))
    with pytest.raises(InputError, match=r"LazyFrame cannot be read; give .* its collect\(\) returns one"):
        model.transform(polars.LazyFrame({"text": TEXTS}))
    assert not recwarn.list  # polars warns where the columns of a lazy frame are asked for


def test_a_set_of_texts_has_no_order(model):
    with pytest.raises(InputError, match="a set, which has no order; give a list of texts"):
        model.transform({"the cat", "the dog"})


@pytest.mark.parametrize("first", [[], [(0, 2), (1, 1)]])
def test_pairs_of_words_and_counts_are_refused_with_advice(first):
    documents = [first, [(1, 3)], [(0, 1), (2, 1)]]
    with pytest.raises(InputError, match=r"pairs such as \(\d, \d\), as bags of words of gensim .*corpus2csc"):
        tl.LDA(n_topics=2).fit(documents)
    counts = tl.LDA(n_topics=2, epochs=1, random_state=0).fit([[2, 1, 0], [0, 3, 1]] * 3)  # rows of counts are no pairs
    assert counts.components_.shape == (2, 3)


@pytest.mark.parametrize(
    ("X", "first"),
    [
        ([1, 2, 3], "document 0 is 1, which is neither a text nor a row of counts; give a list of texts, or counts"),
        ([float("nan")], "document 0 is nan, which is neither"),
        (torch.tensor([1.5, 2]), "document 0 is 1.5, which is neither"),
        ([b"cat"], "document 0 is b'cat', which is neither"),
        ([{"cat": 1}], r"document 0 is \{'cat': 1\}, which is neither"),
        (torch.tensor([]), "the column is empty; give a list of texts"),
    ],
)
def test_values_that_are_neither_texts_nor_rows(model, X, first):
    for call in (model.transform, tl.GSM(2, epochs=1).fit, model.documents):
        with pytest.raises(InputError, match=first):
            call(X)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.array("cat"), r"even for one text: \[text\]"),
        (np.array([["cat"], ["dog"]]), r"these have 2 axes; give one column, X\[:, 0\]"),
        (np.array([["cat", "a"], ["dog", "b"]], object), "these have 2 axes"),
    ],
)
def test_arrays_of_texts_have_one_axis(model, X, says):
    with pytest.raises(InputError, match=says):
        model.transform(X)


def test_a_stream_of_other_words_gives_a_warning(caplog):
    model = tl.GSM(2, hidden_size=8, random_state=0).partial_fit(TEXTS)
    before = model.components_.copy()
    model.partial_fit(["zebra zebra"] * 10)
    assert "no document has a word of the first call of `partial_fit`" in caplog.text
    assert np.array_equal(model.components_, before)
    caplog.clear()
    model.partial_fit([])
    assert not caplog.text


def test_token_lists_are_documents_of_any_model(model):
    np.testing.assert_array_equal(model.transform([["cat", "dog"]]), model.transform(["cat dog"]))


def test_a_mistake_costs_no_fitted_model(model):
    """The earlier fit is there after documents, callbacks or monitors that cannot be used."""
    before = model.components_.copy()
    for X, options in [
        ([], {}),
        ([[0.5, 1.0]], {}),
        (TEXTS, {"callbacks": [print]}),
        (TEXTS, {"callbacks": tl.Callback()}),
        (TEXTS, {"monitor": ["npmi_of_documents"]}),
        (TEXTS, {"monitor": ["document_npmi"], "monitor_every": 0}),
    ]:
        with pytest.raises(InputError):
            model.fit(X, **options)
        np.testing.assert_array_equal(model.components_, before)
        assert len(model.transform(TEXTS)) == len(TEXTS)


def test_a_corpus_with_weights_needs_fractional_counts(model):
    weights = Corpus.from_counts([[0.5, 1.0], [1.0, 2.0]], ["cat", "dog"], fractional=True)
    for call in (model.transform, tl.GSM(2, epochs=1).fit, model.perplexity):
        with pytest.raises(InputError, match="not whole numbers; `fractional_counts=True`"):
            call(weights)
    assert tl.GSM(2, epochs=1, hidden_size=8, fractional_counts=True).fit(weights).transform(weights).shape == (2, 2)


@pytest.mark.parametrize("wrong", [-1, 5, 2**30])
def test_indices_out_of_range_are_refused(model, wrong):
    matrix = sparse.csr_array(np.eye(5, dtype=np.float32))
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indices[2] = wrong
    for call in (model.fit, lambda X: model.transform(X), Corpus.from_counts):
        with pytest.raises(InputError, match=r"indices|features"):
            call(matrix)


def damaged_matrix(**arrays):
    matrix = sparse.csr_array(np.eye(5, dtype=np.float32))
    for name, array in arrays.items():
        setattr(matrix, name, np.array(array))
    return matrix


def coordinates(wrong):
    matrix = sparse.coo_array(np.eye(5))
    matrix.coords = (matrix.row, np.array([0, 1, 2, 3, wrong]))
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (damaged_matrix(indptr=[0, 2, 1, 3, 4, 5]), "its indptr does not fit its indices"),
        (damaged_matrix(indptr=[0, 1, 2, 3, 4, 9]), "its indptr does not fit its indices"),
        (damaged_matrix(indptr=[0, 1]), "its indptr does not fit its indices"),
        (damaged_matrix(indices=[], data=[]), "its indptr does not fit its indices"),
        (damaged_matrix(data=[1.0]), "it has more indices than counts, or fewer"),
        (coordinates(5), "its indices go from 0 to 5, and it has 5 columns"),
        (coordinates(-1), "its indices go from -1 to 3, and it has 5 columns"),
    ],
)
def test_damaged_matrices_are_refused(matrix, message):
    with pytest.raises(InputError, match=f"the sparse matrix is damaged: {message}; make it again"):
        Corpus.from_counts(matrix)


def test_matrices_of_other_libraries():
    np.testing.assert_array_equal(Corpus.from_counts(np.eye(2, dtype=np.float16)).counts.toarray(), np.eye(2))
    np.testing.assert_array_equal(Corpus.from_counts(torch.eye(2)).counts.toarray(), np.eye(2))
    for counts in ([[1, 2], [3]], torch.eye(2).to_sparse(), torch.eye(2, requires_grad=True)):
        with pytest.raises(InputError, match="the counts cannot be read as a matrix"):
            Corpus.from_counts(counts)


def test_documents_over_the_words_of_a_model():
    words, tokenizer = ["dog", "cat"], make_tokenizer("en")
    expected = [[1, 1], [0, 0]]
    corpus = Corpus.from_texts(["a cat, a dog", "birds"], min_df=1, max_df=1.0)
    for X in (["a cat, a dog", "birds"], [["cat", "dog"], ["birds"]], corpus, expected):
        found = corpus_over(X, words, tokenizer)
        assert found.vocabulary == words
        np.testing.assert_array_equal(found.counts.toarray(), expected)
    found = corpus_over([[2, 3]], words, tokenizer, vocabulary=["cat", "bird"])
    np.testing.assert_array_equal(found.counts.toarray(), [[0, 2]])
    assert list(corpus_over(["a cat"], words, tokenizer).texts) == ["a cat"]
    assert list(corpus_over([["cat"]], words, tokenizer).tokens()) == [["cat"]]


def test_a_vocabulary_is_for_matrices():
    assert corpus_of([[1, 2]], ["cat", "dog"]).vocabulary == ["cat", "dog"]
    for X in (TEXTS, Corpus.from_counts([[1, 2]])):
        with pytest.raises(InputError, match="`vocabulary` names the columns of a matrix of counts; leave it out"):
            corpus_of(X, ["cat", "dog"])


def test_a_vocabulary_in_the_place_of_y_is_refused():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    counts, words = np.random.default_rng(0).poisson(1, (6, 4)) + 1, list("abcd")
    model = tl.GSM(2, epochs=1, hidden_size=4, random_state=0)
    vectorizer = text.CountVectorizer(vocabulary=words)
    for X in (counts, counts.tolist(), sparse.csr_array(counts)):
        for y in (words, np.array(words), {"a": 0}, dict(enumerate(words)), vectorizer):
            for method in (model.fit, model.partial_fit, model.fit_transform):
                with pytest.raises(InputError, match=r"^the second argument is `y` of scikit-learn.*`vocabulary="):
                    method(X, y)
    for y in (
        ["x"] * 6,
        [0, 1, 2, 3],
        [["x", "y", "z", "x"]] * 6,
        np.zeros((6, 4)),
        "abcd",
        None,
    ):  # classes, or no words
        model.fit(counts, y)
    model.fit(counts[:4], words)  # which may be the classes of the documents
    with pytest.raises(InputError, match=r"inhomogeneous|same length"):
        model.fit([[1, 2], [3]], ["a"])


def test_a_corpus_on_disk_with_damaged_indices_is_refused(tmp_path):
    Corpus.from_counts(np.eye(4)).save(tmp_path / "corpus")
    for name, wrong in [("indices", 2**30), ("indices", -1), ("indptr", -7), ("data", np.nan)]:
        array = np.load(tmp_path / "corpus" / f"{name}.npy")
        spoilt = array.copy()
        spoilt[1] = wrong
        np.save(tmp_path / "corpus" / f"{name}.npy", spoilt)
        with pytest.raises(InputError, match=f"{name}.npy is damaged"):
            Corpus.load(tmp_path / "corpus")
        np.save(tmp_path / "corpus" / f"{name}.npy", array)


def test_streams_count_the_words_of_every_chunk():
    """Ranking, and the weight of rare words, go by all documents and not by those of the first call."""
    model = tl.GSM(2, epochs=1, hidden_size=8, random_state=0)
    counts = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 5]])
    for part in (counts[:2], counts[2:]):
        model.partial_fit(part)
    np.testing.assert_array_equal(model.word_counts_, counts.sum(0))
    np.testing.assert_array_equal(model.document_counts_, (counts > 0).sum(0))
    assert model.n_documents_ == 3


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_corpus_of_counts_takes_words_from_a_data_frame(library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    corpus = Corpus.from_counts(make({"tea": [1, 0], "cup": [2, 3]}))
    assert corpus.vocabulary == ["tea", "cup"]
    np.testing.assert_array_equal(corpus.counts.toarray(), [[1, 2], [0, 3]])
    assert Corpus.from_counts(make({"tea": [1], "cup": [2]}), ["a", "b"]).vocabulary == ["a", "b"]


def test_columns_with_numbers_are_no_words():
    pandas = pytest.importorskip("pandas")
    assert Corpus.from_counts(pandas.DataFrame([[1, 2]])).vocabulary == ["word0", "word1"]


@pytest.mark.parametrize("change", [torch.Tensor.to_sparse, torch.Tensor.bfloat16, torch.Tensor.requires_grad_])
def test_tensors_that_numpy_cannot_read_are_refused_in_a_sentence(change):
    counts = torch.ones(20, 5)
    model = tl.GSM(2, epochs=1).fit(counts)
    for call in (tl.GSM(2, epochs=1).fit, model.transform):
        with pytest.raises(tl.InputError, match="read as a matrix"):
            call(change(counts.clone()))


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([[(0, 2), (3, 1)], [(1, 1)]], "gensim.matutils.corpus2csc"),
        ([[], [(0, 2), (3, 1)]], "gensim.matutils.corpus2csc"),
        ([["cat", 1], ["dog"]], "expected tokens that are strings, got an int: 1"),
    ],
)
def test_documents_of_other_libraries_are_named(model, X, said):
    for use in (model.transform, tl.GSM(n_topics=2).fit):
        with pytest.raises(InputError, match=said):
            use(X)


def test_a_corpus_of_gensim_is_refused_with_advice(tmp_path):
    corpora, models = (pytest.importorskip(f"gensim.{name}") for name in ("corpora", "models"))
    tokens = [["cat", "dog"], ["dog", "mouse"]] * 9
    dictionary = corpora.Dictionary(tokens)
    bags = [dictionary.doc2bow(each) for each in tokens]
    corpora.MmCorpus.serialize(str(tmp_path / "c.mm"), bags)
    for given in (corpora.MmCorpus(str(tmp_path / "c.mm")), models.TfidfModel(bags)[bags]):
        for take in (Corpus.from_counts, Corpus.from_texts, lambda X: corpus_of(X, dictionary)):
            with pytest.raises(InputError, match=r"as bags of words of gensim are; give gensim.matutils.corpus2csc"):
                take(given)


def test_the_advice_on_bags_of_words_is_followed():
    corpora, matutils = (pytest.importorskip(f"gensim.{name}") for name in ("corpora", "matutils"))
    tokens = [["cat", "dog", "cat"], ["bank"], ["dog", "bank"]]
    dictionary = corpora.Dictionary(tokens)
    bags = [dictionary.doc2bow(each) for each in tokens]
    corpus = Corpus.from_counts(matutils.corpus2csc(bags, num_terms=len(dictionary)).T, vocabulary=dictionary)
    assert corpus.over(["cat", "dog", "bank"]).counts.toarray().tolist() == [[2, 1, 0], [0, 0, 1], [0, 1, 1]]
