"""Topics together with documents: what a person sees of a fitted model, from memory and from a run directory."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused

KINDS = [("pets", PETS), ("money", MONEY)]


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("news") / "news.jsonl"
    rows = [
        {"id": f"d{n}", "text": KINDS[n % 2][1], "label": KINDS[n % 2][0], "timestamp": f"2021-0{1 + n % 9}-01"}
        for n in range(60)
    ]
    rows.append({"id": "d60", "text": "", "label": "", "timestamp": ""})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


FAST = ("--model", "gsm", "--topics", 3, "--epochs", 2, "--quiet", "--monitor", "none")


@pytest.fixture(scope="module")
def run(news: Path) -> Path:
    out = news.parent / "run"
    result = call("train", news, *FAST, "--epochs", 30, "--label", "label", "--timestamp", "timestamp", "--out", out)
    assert result.exit_code == 0, result.output
    return out


def test_a_run_keeps_its_documents(run):
    topics = tl.Topics.from_run(run)
    assert (len(topics), len(topics.corpus), len(topics.names)) == (3, 61, 3)
    assert topics.documents.texts is not None
    assert topics.documents.texts[1] == MONEY
    assert topics.corpus.labels is not None
    assert topics.corpus.labels[:2] == ["pets", "money"]
    assert topics.corpus.times is not None
    assert topics.documents.empty.tolist() == [False] * 60 + [True]
    model = tl.load(run)
    np.testing.assert_allclose(topics.documents.theta, model.transform(topics.corpus), atol=1e-6)
    np.testing.assert_allclose(topics.shares, topics.documents.theta[:60].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(topics.components, model.components_, atol=1e-7)
    assert topics.model.topics() == model.topics()


def test_a_view_in_memory_is_that_of_the_run(run):
    stored = tl.Topics.from_run(run)
    view = tl.Topics(tl.load(run), stored.corpus)
    np.testing.assert_allclose(view.shares, stored.shares, atol=1e-6)
    assert view.names == stored.names
    assert dict(view.words_of(2, 5)) == pytest.approx(dict(stored.words_of(2, 5)))
    texts = tl.Topics(tl.load(run), [PETS, MONEY, ""])
    assert texts.documents.empty.tolist() == [False, False, True]


def test_views_can_be_pickled(run, monkeypatch):
    stored = tl.Topics.from_run(run)
    for view in (stored, tl.Topics(stored.model, stored.corpus)):
        again = pickle.loads(pickle.dumps(view))
        assert again.table().to_markdown() == view.table().to_markdown()
        assert again.model.components_.tolist() == view.model.components_.tolist()
    monkeypatch.chdir(run.parent)
    relative = tl.Topics.from_run(run.name)
    monkeypatch.chdir("/")
    assert relative.model.components_.tolist() == stored.model.components_.tolist()


def test_a_view_refuses_the_model_of_a_replaced_run(run, tmp_path):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    view = tl.Topics.from_run(copy)
    other = tl.GSM(2, epochs=1, hidden_size=8, random_state=1).fit(view.corpus)
    other.save(copy / "model", overwrite=True)
    with pytest.raises(tl.InputError, match="was replaced after its topics had been read; read it again"):
        view.rename({0: "pets"})


def test_the_table_has_a_row_for_each_topic(run):
    topics = tl.Topics.from_run(run)
    table = topics.topic_table(n_words=4)
    assert table["topic"].tolist() == [0, 1, 2]
    assert table["documents"].sum() == 60  # the empty document has no main topic
    assert table["share"].sum() == pytest.approx(1)
    assert [len(words) for words in table["words"]] == [4, 4, 4]
    assert [word for word, _ in topics.words_of(1, 4)] == table["words"][1]


def test_words_and_topics_are_found_without_pytorch(run):
    script = (
        "import sys, topicloom as tl\n"
        f"topics = tl.Topics.from_run({str(run)!r})\n"
        "topics.topic_table(); topics.words_of(0); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_topics_that_do_not_exist_are_refused(run):
    topics = tl.Topics.from_run(run)
    with pytest.raises(tl.InputError, match=r"there is no topic 3; the topics are 0 to 2"):
        topics.words_of(3)
    with pytest.raises(tl.InputError, match=r"there is no topic -1"):
        topics.words_of(-1)
    with pytest.raises(
        tl.InputError, match=r"there is no topic named 'sports'; choose one of 0 '.+, .+', 1 '.+', 2 '.+'$"
    ):
        topics.words_of("sports")
    with pytest.raises(tl.InputError, match="number or the name of a topic; it is True"):
        topics.words_of(True)
    assert topics.words_of(topics.names[2]) == topics.words_of(2)


def test_runs_without_documents_or_texts(news, tmp_path):
    call("train", news, *FAST, "--out", tmp_path / "bare", "--no-documents")
    assert not (tmp_path / "bare" / "documents").exists()
    with pytest.raises(tl.InputError, match=r"does not hold its documents .* keeps them"):
        tl.Topics.from_run(tmp_path / "bare")
    call("train", news, *FAST, "--out", tmp_path / "mute", "--no-texts")
    assert tl.Topics.from_run(tmp_path / "mute").documents.texts is None
    # The folder comes and goes with the run that it belongs to.
    assert call("train", news, *FAST, "--out", tmp_path / "bare", "--overwrite").exit_code == 0
    assert len(tl.Topics.from_run(tmp_path / "bare").documents) == 61
    assert call("train", news, *FAST, "--out", tmp_path / "bare", "--overwrite", "--no-documents").exit_code == 0
    assert not (tmp_path / "bare" / "documents").exists()


def test_a_folder_of_the_users_own_documents_is_not_replaced(news, tmp_path):
    own = tmp_path / "run" / "documents"
    own.mkdir(parents=True)
    (own / "letter.txt").write_text("mine")
    refused("train", news, *FAST, "--out", tmp_path / "run", "--overwrite", says=["holds files that no run wrote"])
    assert (own / "letter.txt").read_text() == "mine"


def test_documents_of_another_model_are_refused(run, tmp_path, news):
    call("train", news, *FAST, "--topics", 2, "--out", tmp_path / "two")
    shutil.copytree(run / "documents", tmp_path / "two" / "documents", dirs_exist_ok=True)
    with pytest.raises(tl.CorpusFileError, match="does not belong to the model"):
        tl.Topics.from_run(tmp_path / "two")


def test_a_notebook_shows_names_and_words_as_text(run):
    topics = tl.Topics.from_run(run).rename({0: "<script>alert(1)</script>"})
    page = topics._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert topics.words_of(1, 1)[0][0] in page


def test_large_corpora_are_kept_only_on_demand(news, tmp_path, monkeypatch):

    monkeypatch.setattr("topicloom.topics.saved._MOST_BYTES_BY_DEFAULT", 100)
    result = call("train", news, *[each for each in FAST if each != "--quiet"], "--out", tmp_path / "large")
    assert "--documents keeps them" in result.stderr
    assert not (tmp_path / "large" / "documents").exists()
    call("train", news, *FAST, "--out", tmp_path / "kept", "--documents")
    assert (tmp_path / "kept" / "documents" / "corpus.json").is_file()


# Documents, tokens and search.


def test_documents_of_a_topic_have_text_and_words(run):
    topics = tl.Topics.from_run(run)
    money = int((topics.documents.theta[1] - topics.documents.theta[0]).argmax())
    found = topics.documents_of(money, n=4)
    assert len(found) == 4
    first = next(found.rows())
    assert first["id"].startswith("d")
    assert first["text"] == MONEY
    assert first["label"] == "money"
    assert set(first["words"]) <= set(MONEY.split())
    assert first["share"] == pytest.approx(float(topics.documents.theta[first["document"], money]))
    short = next(topics.documents_of(money, n=1, length=30).rows())["text"]
    assert short.strip("…") in MONEY
    assert len(short) <= 32
    assert topics.documents_of(topics.names[money], n=1)["id"] == found["id"][:1]


def test_recent_documents_are_the_last(run):
    topics = tl.Topics.from_run(run)
    mains = topics.documents.theta.argmax(axis=1)
    topic = int(mains[0])
    found = topics.documents_of(topic, n=6, kind="recent")
    assert set(mains[list(found["document"])]) == {topic}
    times = found["time"]
    latest = sorted((topics.documents.times[row].item() for row in range(60) if mains[row] == topic), reverse=True)
    assert list(times) == latest[:6]
    assert times[0].month == 9
    assert times[0].year == 2021
    bare = tl.Topics(topics.model, [PETS, MONEY])
    with pytest.raises(tl.InputError, match="no document has a time, so none is recent"):
        bare.documents_of(topic, kind="recent")
    with pytest.raises(tl.InputError, match="`kind` should be one of typical, diverse, recent; it is 'old'"):
        topics.documents_of(topic, kind="old")
    with pytest.raises(tl.InputError, match="`n=0` should be a whole number from 1"):
        topics.documents_of(topic, n=0)


def test_sizes_of_tables_are_whole_numbers(run):
    topics = tl.Topics.from_run(run)
    main = topics.documents.main_topics[0]
    for ask, says in (
        (lambda: topics.documents_of(main, length=-3), "`length=-3` should be a whole number from 1"),
        (lambda: topics.documents_over_time(main, length=0), "`length=0` should be a whole number from 1"),
        (lambda: topics.outliers(length=2.5), "`length=2.5` should be a whole number from 1"),
        (lambda: topics.table(n_documents=-1), "`n_documents=-1` should be a whole number from 0"),
        (lambda: topics.words_over_time(main, n_words=-1), "`n_words=-1` should be a whole number from 1"),
        (lambda: topics.words_by(main, n_words=0), "`n_words=0` should be a whole number from 1"),
        (lambda: topics.words_of(main, relevance="a"), "`relevance` should be from 0 to 1; it is 'a'"),
    ):
        with pytest.raises(tl.InputError, match=f"^{re.escape(says)}$"):
            ask()


class Fixed:
    """A model with given topics and theta, as a view uses one."""

    def __init__(self, components, theta, vocabulary, given_names=None):
        self.components_ = np.asarray(components, np.float32)
        self.theta, self.vocabulary_ = np.asarray(theta, np.float32), vocabulary
        self.word_counts_ = np.ones(len(vocabulary))
        self.given_names = given_names or [None] * len(components)

    def documents(self, X):
        return X

    def infer(self, corpus):
        return tl.DocumentTopics(self.theta, corpus.is_empty, corpus.fields)


def small_view(theta, texts=None):
    counts = [[4, 4, 0, 0], [4, 4, 0, 0], [4, 0, 4, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    corpus = tl.Corpus.from_counts(counts, ["a", "b", "c", "d"], texts=texts)
    return tl.Topics(Fixed([[0.4, 0.3, 0.3, 0], [0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4]], theta, corpus.vocabulary), corpus)


THETA = [[0.8, 0.1, 0.1], [0.79, 0.11, 0.1], [0.7, 0.2, 0.1], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3]]


def test_lists_of_documents_have_those_of_the_topic_only():
    topics = small_view(THETA)
    assert topics.documents_of(0, n=9)["document"] == [0, 2, 3, 1]  # the second repeats the first, the last has no word
    assert topics.documents_of(0, n=3, kind="diverse")["document"] == [0, 2, 3]
    assert len(topics.documents_of(1)) == 0  # nobody has more of it than an equal share
    assert list(topics.documents_of(1).columns) == ["document", "id", "share", "label", "time", "words", "text"]
    assert topics.documents_of(1, kind="diverse").to_dicts() == []


FRUIT = ["fruit", "apple", "pear", "fresh", "sweet", "plum", "shampoo", "bottle", "smell", "very"]


def fruit_view(bags, shares=None, vectors=None):
    """Documents of a topic of fruit, as bags of words, and eight usual ones of five words before them."""
    usual = [" ".join(FRUIT[(i + j * (1 + i // 6)) % 6] for j in range(4)) + f" {FRUIT[6 + i % 4]}" for i in range(8)]
    bags = [*usual, *bags]
    counts = [[bag.split().count(word) for word in FRUIT] for bag in bags]
    own = [0.9] * len(usual) + list(shares or [0.9] * (len(bags) - len(usual)))
    corpus = tl.Corpus.from_counts(counts, FRUIT, texts=bags, vectors=vectors)
    beta = [[0.3, 0.15, 0.15, 0.13, 0.13, 0.1, 0.01, 0.01, 0.01, 0.01], [0.05] * 6 + [0.175] * 4]
    return tl.Topics(Fixed(beta, np.column_stack([own, 1 - np.array(own)]), FRUIT), corpus)


@pytest.mark.parametrize(
    ("bag", "share"),
    [
        ("fruit " * 19, 0.99),  # one word many times
        ("fruit", 0.99),  # one word
        ("shampoo bottle smell very fruit", 0.9),  # the topic's first word among others
        (" ".join(FRUIT * 5), 0.9),  # all words, very long
        ("fruit apple pear fresh sweet", 0.55),  # half of it is about something else
    ],
)
def test_what_is_not_typical_comes_after_usual_documents(bag, share):
    ranked = fruit_view([bag], [share]).documents_of(0, n=9)["document"]
    assert ranked.index(8) >= 5
    for kind in ("typical", "diverse"):
        assert 8 not in fruit_view([bag], [share]).documents_of(0, n=4, kind=kind)["document"]


def test_copies_of_a_document_are_listed_after_all_others():
    best = "fruit apple pear fresh sweet"
    topics = fruit_view([best] * 30 + [best + " fruit", best + " plum"], [0.95] * 32)
    assert len(topics.documents_of(0, n=99)) == 40
    for kind in ("typical", "diverse"):
        texts = topics.documents_of(0, n=5, kind=kind)["text"]
        assert sum(text.startswith(best) for text in texts) == 1


def test_documents_near_the_centre_of_the_vectors_come_first():
    vectors = [[1, 0, 0.1 * (i % 3)] for i in range(8)] + [[1, 0, 0.1], [-1, 1, 0], [0, 0, 0]]
    bags = ["fruit apple pear fresh plum", "fruit apple pear sweet plum", "fruit apple fresh sweet plum"]
    ranked = fruit_view(bags, vectors=vectors).documents_of(0, n=11)["document"]
    assert ranked.index(8) < ranked.index(10)  # the last has no vector, and counts as one in the middle
    assert ranked.index(10) < ranked.index(9)


@pytest.mark.parametrize(
    ("topic", "counts", "theta", "words"),
    [
        (0, [4, 4, 0, 0], [0.8, 0.1, 0.1], ["a", "b"]),  # both are more frequent in the topic than usual, a the most
        (0, [1, 9, 0, 0], [0.8, 0.1, 0.1], ["b", "a"]),  # many tokens are more typical than one
        (0, [0, 4, 4, 0], [0.6, 0.0, 0.4], ["c", "b"]),  # both alike in the topic, but b is another topic's as well
        (2, [4, 4, 0, 0], [0.1, 0.0, 0.9], ["b"]),  # a is rarer in the topic than usual
    ],
)
def test_the_words_shown_of_a_document_are_typical(topic, counts, theta, words):
    corpus = tl.Corpus.from_counts([counts], ["a", "b", "c", "d"])
    model = Fixed([[0.4, 0.3, 0.3, 0], [0, 0, 0, 1], [0.1, 0.4, 0.2, 0.3]], [theta], corpus.vocabulary)
    assert tl.Topics(model, corpus).documents_of(topic)["words"] == [words]


def test_words_of_groups_and_periods_are_those_used_more():
    counts, years = np.array([[50, 10, 3], [10, 50, 3]] * 10), ["2020", "2022"] * 10
    corpus = tl.Corpus.from_counts(counts, ["a", "b", "c"], labels=["one", "other"] * 10, timestamps=years)
    theta, beta = np.tile([0.25, 0.75], (20, 1)), np.array([[0.1, 0.0, 0.9], [0.5, 0.5, 0.0]])
    topics = tl.Topics(Fixed(beta, theta, corpus.vocabulary), corpus)
    of_a = 0.75 * 0.5 / (0.75 * 0.5 + 0.25 * 0.1)  # the part of the tokens of "a" that topic 1 has; of "b" it has all
    for column, table, names in (
        ("group", topics.words_by(1), ["one", "other"]),
        ("period", topics.words_over_time(1, "year"), ["2020", "2022"]),
    ):
        found = [(row[column], row["word"], row["tokens"]) for row in table.rows()]
        assert found == [(names[0], "a", pytest.approx(500 * of_a)), (names[1], "b", pytest.approx(500))]
        assert min(table["score"]) >= 1.96


def test_the_table_has_coherence_exclusivity_and_representative_documents():
    topics = small_view(THETA)
    table = topics.topic_table()
    assert list(table.columns) == [
        *("topic", "name", "share", "documents", "words", "representative", "coherence", "exclusivity"),
    ]
    assert table["representative"].tolist() == [["0", "2", "3"], [], []]  # the second repeats the first
    assert table["documents"].tolist() == [4, 0, 0]
    # Of the four words, topic 0 has these shares of their probability in all topics.
    assert table["exclusivity"][0] == pytest.approx(np.mean([0.4 / 0.5, 0.3 / 0.5, 0.3 / 0.6, 0]), abs=1e-6)
    expected = tl.metrics.document_npmi(topics._topics.word_ids(10), topics.corpus.counts).per_topic
    np.testing.assert_allclose(table["coherence"], expected)


def test_tokens_have_the_topics_of_their_document(run):
    topics = tl.Topics.from_run(run)
    found = topics.topics_of(1)
    assert found.text == MONEY
    assert [MONEY[slice(*token.span)] for token in found.tokens] == [token.word for token in found.tokens]
    k = topics._topics.vocabulary.index("money")
    theta = topics.documents.theta[1].astype(np.float64)
    expected = theta * topics.components[:, k]
    row = [token.word for token in found.tokens].index("money")
    np.testing.assert_allclose(found.weights[row], expected / expected.sum(), rtol=1e-5)
    assert found.tokens[row].topic == expected.argmax()
    assert "".join(piece for piece, _ in found.pieces()) == MONEY
    assert found.topics[0][2] == pytest.approx(theta.max())
    assert topics.topics_of("d1").tokens == found.tokens
    assert repr(found).startswith("ColouredText(")
    with pytest.raises(tl.InputError, match="there is no document 61; the documents are 0 to 60"):
        topics.topics_of(61)


def test_a_new_text_is_coloured_and_its_markup_shown(run):
    from rich.console import Console

    topics = tl.Topics.from_run(run)
    text = "Money & <b>BANKS</b> \x1b[31m<script>alert(1)</script> <unk> strange"
    found = topics.topics_of(text)
    assert [token.word for token in found.tokens if token.topic is not None] == ["money", "banks"]
    page = found._repr_html_()
    assert "<script" not in page
    assert "&lt;unk&gt;" in page
    assert ">BANKS</span>" in page
    console = Console(force_terminal=True, color_system="truecolor", width=200)
    with console.capture() as shown:
        console.print(found)
    assert "BANKS" in shown.get()
    assert "\x1b[31m<" not in shown.get()
    empty = topics.topics_of("")
    assert empty.tokens == []
    assert empty._repr_html_()


def test_an_id_that_does_not_exist_is_no_text(run):
    topics = tl.Topics.from_run(run)
    with pytest.raises(
        tl.InputError, match=r"there is no document 'd599', and if it is a text, the model knows no word of it; did"
    ):
        topics.topics_of("d599")


def test_without_texts_the_words_are_shown():
    found = small_view(THETA).topics_of(0)
    assert found.text is None
    assert [token.word for token in found.tokens] == ["a", "b"]
    assert "".join(piece for piece, _ in found.pieces()) == "a b"


def test_chinese_tokens_are_found_in_their_text():
    pytest.importorskip("rjieba")
    texts = ["湖人队昨晚赢得了比赛，Lakers 球迷庆祝", "银行降低了利率，股票上涨"] * 10
    corpus = tl.Corpus.from_texts(texts, language="zh", min_df=1, max_df=1.0)
    topics = tl.Topics(tl.GSM(n_topics=2, epochs=1, random_state=0, device="cpu").fit(corpus), corpus)
    found = topics.topics_of(0)
    main = int(found.theta.argmax())
    spans = [texts[0][slice(*token.span)] for token in found.tokens]
    assert [span.casefold() for span in spans] == [token.word for token in found.tokens]
    assert "Lakers" in spans
    assert "比赛" in spans
    assert topics.find_topics("利率")["weight"][0] > 0.4
    assert topics.documents_of(main, n=1, length=8)["text"][0].strip("…") in "".join(texts)


def test_words_and_texts_find_topics(run):
    topics = tl.Topics.from_run(run)
    found = topics.find_topics("Money", n=3)
    column = topics._topics.vocabulary.index("money")
    expected = topics.components[:, column] * topics.shares
    assert found["topic"][0] == expected.argmax()
    assert found["weight"][0] == pytest.approx(float(expected.max() / expected.sum()), rel=1e-5)
    text = topics.find_topics(MONEY, n=1)
    assert text["topic"] == [int(topics.documents.theta[1].argmax())]
    with pytest.raises(tl.InputError, match=r"the model knows no word of 'moneyy'; did you mean money"):
        topics.find_topics("moneyy")
    with pytest.raises(tl.InputError, match=r"the model knows no word of 'qqqqqqq'; give other words$"):
        topics.find_topics("qqqqqqq")  # no list of the vocabulary
    for n in (0, -1, True):
        with pytest.raises(tl.InputError, match=f"`n={n}` should be a whole number from 1"):
            topics.find_topics("money", n)
    with pytest.raises(tl.InputError, match="there is nothing to find"):
        topics.find_topics("  ")


def test_a_search_names_the_words_it_leaves_out(run, caplog):
    topics = tl.Topics.from_run(run)
    with caplog.at_level("WARNING", logger="topicloom"):
        topics.find_topics(MONEY)
        topics.find_topics("money")
        assert caplog.records == []
        topics.find_topics("zebras have money and zebras have quaggas")
    (record,) = caplog.records
    assert record.getMessage() == "words that the model does not know are left out: 'zebras', 'quaggas'"


def test_a_view_may_have_no_documents(run):
    view = tl.Topics(tl.load(run), [])
    assert view.shares.tolist() == [0, 0, 0]
    assert len(view.table()) == 3
    assert len(view.documents_of(0)) == 0
    assert len(view.merge([0, 1])) == 2
    with pytest.raises(tl.InputError, match=r"there is no document 0; this view has none$"):
        view.topics_of(0)


@pytest.mark.parametrize(
    ("text", "tokens", "found"),
    [
        ("There, here.", ["here"], ["here"]),  # not the end of "There"
        ("Don't stop the CAFÉ\u0301", ["don't", "stop"], ["Don't", "stop"]),
        ("ＡＢＣ def", ["abc", "def"], ["ＡＢＣ", "def"]),
        ("ﬁne", ["fine"], ["ﬁne"]),
        ("东京tokyo塔", ["东京", "tokyo", "塔"], ["东京", "tokyo", "塔"]),
        ("a b", ["missing", "b"], [None, "b"]),
        ("", ["x"], [None]),
    ],
)
def test_tokens_are_found_in_texts(text, tokens, found):
    from topicloom.text.tokenizing import token_spans

    spans = token_spans(text, tokens)
    assert [None if span is None else text[slice(*span)] for span in spans] == found


def test_excerpts_show_the_passage_with_the_words():
    from topicloom.text.tokenizing import excerpt

    text = "word " * 100 + "the bank raised its rates " + "word " * 100
    assert "bank raised its rates" in excerpt(text, ["bank", "rates"], 60)
    assert "bank raised its rates" in excerpt(f"bank {text} rates", ["bank", "rates"], 60)  # not the first or the last
    assert len(excerpt(text, ["bank"], 60)) <= 62
    assert excerpt("short", [], 60) == "short"
    assert excerpt("", ["x"], 60) == ""
    assert len(excerpt("长" * 500, ["无"], 60)) == 61


@pytest.mark.parametrize(
    ("call_of", "says"),
    [
        (
            lambda view: tl.Topics(view.corpus, view.model),
            r"`model` should be a fitted model, and the documents come se",
        ),
        (lambda view: tl.Topics(tl.GSM, view.corpus), r"`model` should be a fitted model"),
        (lambda view: tl.Topics.of(view.corpus, view.model, None), r"`model` should be a fitted model"),
        (lambda view: view.rename(["a"]), r"`names` should have topics and their names, such as {3: .*; it is \['a'\]"),
        (lambda view: view.merge(None), r"`topics` should be numbers or names of topics"),
        (lambda view: view.find_topics(["x"]), r"`query` should be a word or a text; it is \['x'\]"),
        (
            lambda view: view.match(None),
            r"`other` should be an older run, as a path, a view or a fitted model; it is No",
        ),
        (lambda view: view.replay(3), r"`other` should be an edited run, as a path, a view or a model; it is 3"),
        (lambda view: view.model.save(None), r"`directory` should be a path, as a text or a Path; it is None"),
        (lambda view: view.corpus.save(3), r"`directory` should be a path"),
        (lambda view: tl.load(None), r"`directory` should be a path"),
        (lambda view: tl.Corpus.load(None), r"`directory` should be a path"),
        (lambda view: tl.Topics.from_run(None), r"`run` should be a path"),
        (lambda view: tl.Corpus.from_file(5), r"`source` should be a path"),
        (lambda view: tl.Corpus.from_texts(["a b"], tokenizer=5), r"`tokenizer` should be a function .*; it is 5"),
        (lambda view: tl.Checkpoints(None), r"`directory` should be a path"),
        (lambda view: tl.GSM(2).fit(view.corpus, checkpoint=5), r"`checkpoint` should be a path"),
    ],
)
def test_arguments_of_another_kind_are_refused_in_a_sentence(run, call_of, says):
    with pytest.raises(tl.InputError, match=says):
        call_of(tl.Topics.from_run(run))
