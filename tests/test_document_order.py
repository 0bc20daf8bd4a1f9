"""LDA by variational Bayes with all documents in a step: their order changes nothing, and the step is the paper's."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

import topicloom as tl
from topicloom.models.online_lda import BatchRun

CORPUS = tl.datasets.synthetic_lda(n_docs=80, n_words=60, n_topics=3, random_state=0).corpus
ORDER = np.random.default_rng(1).permutation(80)


def test_the_order_of_documents_changes_nothing():
    settings = {"batch_size": None, "epochs": 8, "random_state": 0}
    one, other = (tl.LDA(3, **settings).fit(each) for each in (CORPUS, CORPUS.subset(ORDER)))
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(one.transform(CORPUS)[ORDER], other.transform(CORPUS.subset(ORDER)), atol=1e-5)
    online = [tl.LDA(3, batch_size=30, epochs=2, random_state=0).fit(each) for each in (CORPUS, CORPUS.subset(ORDER))]
    assert np.abs(online[0].components_ - online[1].components_).max() > 1e-4  # whose steps are parts of the documents


def test_a_step_is_that_of_the_paper():
    """Blei, Ng & Jordan 2003, figure 6 and equation 9, with E[log beta] in place of log beta; document by document."""
    run = BatchRun(3, CORPUS.n_words, alpha=0.5, eta=0.2, seed=0, pseudo_counts=None)
    log_beta = digamma(run.topics) - digamma(run.topics.sum(axis=1, keepdims=True))
    expected = np.full(run.topics.shape, 0.2)
    for x in CORPUS.counts.toarray().astype(float):
        gamma = 0.5 + np.full(3, x.sum() / 3)
        for _ in range(100):
            phi = np.exp(log_beta.T + digamma(gamma))  # (V, 3)
            phi /= phi.sum(axis=1, keepdims=True)
            before, gamma = gamma, 0.5 + x @ phi
            if np.abs(gamma - before).mean() < 1e-3:
                break
        phi = np.exp(log_beta.T + digamma(gamma))
        expected += (x[:, None] * phi / phi.sum(axis=1, keepdims=True)).T
    run.learn(CORPUS.counts)
    np.testing.assert_allclose(run.topics, expected, rtol=1e-3, atol=1e-3)


def test_a_fit_goes_on_from_its_state():
    states = []

    class Keep(tl.Callback):
        def on_state(self, state):
            states.append(state.snapshot())

    whole = tl.LDA(3, batch_size=None, epochs=4, random_state=0).fit(CORPUS, callbacks=[Keep()])
    again = tl.LDA(3, batch_size=None, epochs=4, random_state=0).fit(CORPUS, resume_from=states[1])
    np.testing.assert_array_equal(again.components_, whole.components_)
    assert [row["epoch"] for row in again.history_] == [1, 2, 3, 4]
