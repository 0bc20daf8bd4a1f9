"""ProdLDA and NVLDA: topic models with a logistic normal in place of the Dirichlet.

Srivastava & Sutton 2017, "Autoencoding Variational Inference for Topic Models". Both models are DirichletVAE with the
Laplace estimator. NVLDA has the mixture theta beta, and ProdLDA the product of experts softmax(theta B + b). The paper
ranks the words of a topic by its row of B. Here b contains the log word frequencies, and B what a topic adds, so this
is the ranking of softmax(b + B) by relevance 0. Without batch normalisation, components_ is softmax(b + B).

The defaults depart from the paper as follows; the settings in parentheses are the paper's:
- theta B is not batch-normalised for each word (batch_norm=True, background=False), because this gives rare words the
  weight of common ones. The paper uses it to keep topics from being lost. Here the encoder prevents that by normalising
  its means (code_norm="shift" has the authors' normalisation). For the same reason ProdLDA has no dropout on the hidden
  vector, and NVLDA .2 (dropout=0.2 and 0.25 in the authors' code).
- The prior approximates Dirichlet(alpha) with an alpha below 1 (alpha=1 in the authors' code).
- Half of a document's words are hidden from the encoder in training (input_dropout=0), which receives log(1 + x)
  (encoder_input="raw").
- The weight of the divergence rises to 1, and in ProdLDA to .6, in the first three quarters of the epochs
  (kl_weight=1, kl_warmup=0).
- Training starts at clusters of documents (start="random").
- Shares of topics are learned (learn_shares=False), and training starts with spare topics (spare_topics=0). In NVLDA,
  topics are deviations from the background (background=False), and a term of the loss keeps them apart
  (min_diversity=0).
- Topics are learned four times as fast as the encoder in ProdLDA, and ten times in NVLDA (topic_gain=1).
- Both hidden layers have 128 units and not 100. Adam's learning rate goes through one cycle, with a beta1 of .9
  (schedule="constant", beta1=0.99, batch_size=200, learning_rate=0.002 for ProdLDA and 0.005 for NVLDA).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..settings import AtLeastOne, DirichletParameter, NotNegative, Positive, Rate
from .dirichlet import DirichletVAE, Estimator
from .neural import PLAIN_VARIATIONAL

_AUTHORS: dict[str, Any] = PLAIN_VARIATIONAL | {  # the settings that the authors' code has for both models
    "alpha": 1.0,
    "code_norm": "shift",
    "code_norm_eps": 1e-3,
    "hidden_size": 100,
    "batch_size": 200,
    "beta1": 0.99,
}
_CONTEXTUALIZED: dict[str, Any] = _AUTHORS | {  # those of contextualized-topic-models
    "batch_norm": True,
    "code_norm_eps": 1e-5,
    "dropout": 0.2,
    "theta_dropout": 0.2,
    "batch_size": 64,
    "learning_rate": 2e-3,
    "epochs": 100,
}


@dataclass(eq=False, repr=False, kw_only=True)
class ProdLDA(DirichletVAE):
    """ProdLDA: topics as a product of experts over words (Srivastava & Sutton 2017).

    `ProdLDA.as_published(recipe="combined")` is CombinedTM, whose encoder reads the words and the vector of a document
    (Bianchi, Terragni & Hovy 2021), and `recipe="zeroshot"` is ZeroShotTM, whose encoder reads the vector alone
    (Bianchi, Terragni, Hovy, Nozza & Fersini 2021).

    Each batch takes memory in proportion to the vocabulary. The settings are those of `help(topicloom.DirichletVAE)`
    and `help(topicloom.VariationalTopicModel)`, with other defaults.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.ProdLDA(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    published: ClassVar[dict[str, Any]] = _AUTHORS | {
        "batch_norm": True,
        "batch_norm_eps": 1e-3,
        "dropout": 0.2,
        "theta_dropout": 0.2,
        "learning_rate": 2e-3,
        "epochs": 80,
    }
    recipes: ClassVar[dict[str, dict[str, Any]]] = {
        "combined": _CONTEXTUALIZED | {"encoder_reads": "both"},
        "zeroshot": _CONTEXTUALIZED | {"encoder_reads": "vectors"},
    }

    estimator: Estimator = "laplace"
    decoder: Literal["mixture", "product"] = "product"
    alpha: DirichletParameter | None = 0.5
    topic_gain: Positive = 4.0
    kl_weight: NotNegative | None = 0.6
    batch_norm: bool = False
    dropout: Rate = 0.0
    epochs: AtLeastOne = 30
    min_diversity: Rate = 0.0  # the separation term makes topics more diverse, but titles less coherent


@dataclass(eq=False, repr=False, kw_only=True)
class NVLDA(DirichletVAE):
    """NVLDA: a mixture of topics with a logistic-normal posterior (Srivastava & Sutton 2017).

    This is `DirichletVAE(estimator="laplace")` under the name of its paper: with the same settings, both learn the same
    topics. GSM differs in its prior, N(0, I). The settings are those of `help(topicloom.DirichletVAE)` and
    `help(topicloom.VariationalTopicModel)`.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.NVLDA(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    published: ClassVar[dict[str, Any]] = _AUTHORS | {
        "topic_norm": True,
        "batch_norm_eps": 1e-3,
        "dropout": 0.25,
        "theta_dropout": 0.25,
        "learning_rate": 5e-3,
        "epochs": 300,
    }

    estimator: Estimator = "laplace"
