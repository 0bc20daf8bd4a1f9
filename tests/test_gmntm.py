"""The components of GMNTM, as `predict` returns them."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from topicloom import GMNTM
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError

N_TOPICS = 3
DRAWN = synthetic_lda(400, N_TOPICS, 60, 40, alpha=0.05, shares=[0.15, 0.7, 0.15], random_state=0)


@pytest.fixture(scope="module")
def fitted() -> GMNTM:
    return GMNTM(N_TOPICS, epochs=20, pretrain_epochs=10, random_state=1, device="cpu").fit(DRAWN.corpus)


def test_a_component_is_that_of_a_topic(fitted):
    components = fitted.predict(DRAWN.corpus)
    assert components.shape == (400,)
    assert np.mean(components == fitted.transform(DRAWN.corpus).argmax(1)) > 0.9


def test_documents_without_known_words_get_the_likeliest_component(fitted):
    torch.testing.assert_close(fitted.network_.prior.log_pi.exp().sum(), torch.tensor(1.0))
    for shift in (0, 1):  # so that it is not merely the first one
        model = deepcopy(fitted)
        prior = model.network_.prior
        prior.weights.copy_(prior.weights.roll(shift))
        largest = int(prior.log_pi.argmax())
        assert model.predict([["unheard"], []]).tolist() == [largest, largest]


def test_no_documents_have_no_components(fitted):
    assert fitted.predict([]).shape == (0,)


@pytest.mark.parametrize(("n_topics", "n_docs", "share", "n_components"), [(20, 21, 0.1, 20), (10, 40, 0.6, 20)])
def test_held_out_documents_do_not_count_for_the_components(n_topics, n_docs, share, n_components):
    model = GMNTM(n_topics, epochs=2, pretrain_epochs=1, hidden_size=8, patience=1, random_state=0)
    model.set_params(validation_fraction=share)
    with pytest.raises(InputError, match=f"{n_components} topics need .* are not held out; .* `validation_fraction`"):
        model.fit(DRAWN.corpus[:n_docs])
    model.set_params(validation_fraction=0.04).fit(DRAWN.corpus[:n_docs])
    assert len(model.components_) == n_topics
