"""Held-out documents of the user's own in `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import topicloom as tl
from histories import Keeper
from topicloom.errors import InputError, SettingError

CORPUS = tl.datasets.synthetic_lda(200, 3, 40, random_state=1).corpus
TRAIN, HELD_OUT = CORPUS[:140], CORPUS[140:]
SMALL: dict[str, Any] = {"n_topics": 3, "hidden_size": 8, "random_state": 3}


def test_the_recorded_held_out_loss_changes_nothing():
    plain = tl.GSM(**SMALL, epochs=3).fit(TRAIN)
    watched = tl.GSM(**SMALL, epochs=3).fit(TRAIN, validation=HELD_OUT)
    assert np.array_equal(plain.components_, watched.components_)
    assert "validation_loss" not in plain.history_[0]
    losses = [row["validation_loss"] for row in watched.history_]
    other = tl.GSM(**SMALL, epochs=3).fit(TRAIN, validation=HELD_OUT[:30])
    assert losses != [row["validation_loss"] for row in other.history_]
    assert np.isfinite(losses).all()


def test_patience_stops_by_the_given_documents():
    """Documents of noise get no better for long, whatever the training documents do; all of these are trained on."""
    noise = tl.Corpus.from_counts(np.random.default_rng(0).poisson(1, (60, 40)), CORPUS.vocabulary)
    model = tl.GSM(**SMALL, epochs=200, patience=2, spare_topics=0, kl_warmup=0).fit(TRAIN, validation=noise)
    losses = [row["validation_loss"] for row in model.history_]
    assert len(losses) < 200
    assert int(np.argmin(losses)) == len(losses) - 3
    assert model.n_documents_ == len(TRAIN)


def test_held_out_documents_may_be_texts_over_other_words():
    texts = ["cat dog cat fish", "bank money bank rates"] * 20
    model = tl.GSM(2, epochs=2, hidden_size=8).fit(texts, validation=["cat dog unseen", "money rates"])
    assert np.isfinite(model.history_[-1]["validation_loss"])


def test_mistakes_keep_the_earlier_fit():
    model = tl.GSM(**SMALL, epochs=1).fit(TRAIN)
    before = model.components_
    with pytest.raises(InputError, match="no document of `validation` has a word"):
        model.fit(TRAIN, validation=[["unknown", "words"]])
    assert model.components_ is before
    with pytest.raises(SettingError, match="LDA has no loss by epoch"):
        tl.LDA(3).fit(TRAIN, validation=HELD_OUT)
    with pytest.raises(SettingError, match="callbacks should be a list"):
        model.fit(TRAIN, callbacks=print)


def test_a_resumed_fit_holds_out_the_same_documents():
    """The seed that was drawn for the first fit is in the snapshot."""
    keeper = Keeper()
    settings = SMALL | {"random_state": None, "epochs": 4, "patience": 4}
    whole = tl.GSM(**settings).fit(CORPUS, callbacks=[keeper])
    resumed = tl.GSM(**settings).fit(CORPUS, resume_from=keeper.snapshots[1])
    assert np.array_equal(whole.components_, resumed.components_)
    assert [row["validation_loss"] for row in whole.history_] == [row["validation_loss"] for row in resumed.history_]
