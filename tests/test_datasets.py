"""The built-in corpora."""

from __future__ import annotations

import numpy as np
import pytest

from topicloom.datasets import cnews10k, python_docs, synthetic_lda, three_body, twenty_newsgroups, zhdd
from topicloom.errors import InputError, SettingError


@pytest.fixture(scope="module")
def docs():
    return python_docs()


def test_python_docs(docs):
    assert len(docs) > 500
    assert {"socket", "thread", "datetime", "xml", "email"} <= set(docs.vocabulary)
    assert not {"the", "returns", "self"} & set(docs.vocabulary)
    assert docs.is_empty.mean() < 0.05
    assert "email.message.Message" in docs.ids
    assert len(set(docs.ids)) > 0.99 * len(docs)
    assert docs.labels[docs.ids.index("email.message.Message")] == "email"
    assert "test" not in docs.labels
    assert "message" in docs.texts[docs.ids.index("email.message.Message")]


def test_python_docs_takes_options(docs):
    assert python_docs(max_features=50).vocabulary == docs.vocabulary[:50]


def test_synthetic():
    corpus, topics, theta = synthetic_lda(n_docs=300, n_topics=4, n_words=50, doc_length=40)
    assert (corpus.counts.shape, topics.shape, theta.shape) == ((300, 50), (4, 50), (300, 4))
    np.testing.assert_allclose(topics.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(theta.sum(1), 1, rtol=1e-5)
    assert abs(corpus.n_tokens / 300 - 40) < 1.5
    # The expected counts are 40 theta topics; a chi-square per cell is about 1.
    expected = 40 * theta.astype(float) @ topics
    cells = expected > 0.5
    assert abs(((corpus.counts.toarray() - expected) ** 2 / expected)[cells].mean() - 1) < 0.1


def test_synthetic_is_repeatable_and_leaves_the_global_state():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two, other = (synthetic_lda(50, random_state=seed) for seed in (1, 1, 2))
    assert (one.corpus.counts != two.corpus.counts).nnz == 0
    assert (one.corpus.counts != other.corpus.counts).nnz > 0
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_synthetic_with_given_topics():
    corpus, topics, _ = synthetic_lda(20, topics=[[0.5, 0.5, 0, 0], [0, 0, 0, 1]])
    assert topics.shape == (2, 4)
    assert corpus.counts[:, [2]].sum() == 0


@pytest.mark.parametrize(
    "settings", [{"n_docs": 0}, {"alpha": 0}, {"eta": -1}, {"doc_length": 0}, {"topics": [[1, 1]]}]
)
def test_synthetic_settings(settings):
    with pytest.raises(SettingError):
        synthetic_lda(**settings)


def test_twenty_newsgroups(monkeypatch):
    import sklearn.datasets

    def no_network(**options):
        raise OSError("Name or service not known")

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", no_network)
    with pytest.raises(
        InputError, match=r"cannot be downloaded \(Name or .*\); connect to the network, or use python_docs"
    ):
        twenty_newsgroups()
    with pytest.raises(SettingError, match="`subset='dev'` should be"):
        twenty_newsgroups("dev")

    def posts(**options):
        return sklearn.utils.Bunch(data=["cat mat", "dog mat"], target=[0, 1], target_names=["sci", "rec"])

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", posts)
    corpus = twenty_newsgroups(min_df=1, max_df=1.0)
    assert corpus.labels == ["sci", "rec"]


ALL = {"min_df": 1, "max_df": 1.0, "stop_words": None}


def test_chinese_titles(tmp_path):
    plain, labelled = tmp_path / "plain.txt", tmp_path / "labelled.txt"
    plain.write_text("皇马输球\n\n股市上涨 3%\n", "utf-8")
    labelled.write_text("体育\t皇马输球\n财经\t股市上涨\t3%\n", "gb18030")
    assert list(cnews10k(plain, **ALL).texts) == ["皇马输球", "", "股市上涨 3%"]
    corpus = cnews10k(labelled, encoding="gb18030", **ALL)
    assert corpus.labels == ["体育", "财经"]
    assert "股市" in corpus.vocabulary
    assert corpus.tokenizer.language == "zh"
    with pytest.raises(InputError, match=r"utf-8|UTF-8"):
        cnews10k(labelled, **ALL)
    with pytest.raises(InputError):
        cnews10k(tmp_path / "none.txt")
    (tmp_path / "void.txt").write_text("\n\n", "utf-8")
    with pytest.raises(InputError, match="no text"):
        cnews10k(tmp_path / "void.txt")


def test_a_chinese_novel(tmp_path):
    novel = tmp_path / "novel.txt"
    novel.write_text(
        "　　小说 \n　　作者著\n\n\n　　1.科学边界\n　　他来了。\n　　1988 年产的相机。\n"
        "　　2.台球\n　　他走了，3.5 秒。\n第三章 尾声\n结束。\n",
        "utf-8",
    )
    paragraphs = three_body(novel, **ALL)
    assert paragraphs.labels == ["", "", "1.科学边界", "1.科学边界", "2.台球", "第三章 尾声"]
    chapters = three_body(novel, "chapter", **ALL)
    assert chapters.labels == ["", "1.科学边界", "2.台球", "第三章 尾声"]
    assert chapters.texts[1] == "他来了。\n1988 年产的相机。"
    novel.write_text("没有章节。\n" * 3, "utf-8")
    with pytest.raises(InputError, match="no heading"):
        three_body(novel, "chapter")
    with pytest.raises(SettingError, match="unit"):
        three_body(novel, "page")


@pytest.mark.parametrize(
    "text",
    [
        "你好。__eou__ 你好吗？__eou__\n再见。 __eou__ 好的。\n",
        "你好。\t你好吗？\n再见。\t好的。",
        "你好。\n你好吗？\n\n再见。\n好的。\n\n",
    ],
)
def test_chinese_dialogues(tmp_path, text):
    (tmp_path / "zhdd.txt").write_text(text, "utf-8")
    assert list(zhdd(tmp_path / "zhdd.txt", **ALL).texts) == ["你好。\n你好吗？", "再见。\n好的。"]


def test_synthetic_documents_are_shown_by_their_sizes():
    made = synthetic_lda(n_docs=20, n_topics=3, n_words=30, random_state=0)
    assert str(made) == f"Synthetic({made.corpus!r}, topics (3, 30), theta (20, 3))"
