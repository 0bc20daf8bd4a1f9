"""ProdLDA and NVLDA: topic models with a logistic normal in the place of the Dirichlet.

Srivastava & Sutton 2017, "Autoencoding Variational Inference for Topic Models": both are DirichletVAE with the Laplace
estimator; NVLDA has the mixture theta beta, ProdLDA the product of experts softmax(theta B + b). The authors rank a
topic's words by its row of B. With a background b of log frequencies, B is what a topic adds to them, so that their
ranking is relevance 0 of softmax(b + B), which is what components_ holds where there is no batch normalisation.

Where the defaults depart from the paper, and how to come back to it:
- theta B is not batch-normalised per word (batch_norm=True, background=False): with the norm, rare words get the weight
  of common ones. What it cures, the loss of topics, is cured in the encoder, whose means are normalised; there is no
  dropout on the hidden vector either (dropout=0.2);
- the prior approximates Dirichlet(alpha) with alpha below 1 (the authors' code has 1);
- half of a document's words are hidden from the encoder (input_dropout), which sees log(1 + x) (encoder_input="raw");
- both hidden layers have 128 units and not 100; Adam's rates go through one cycle, with beta1 .9
  (schedule="constant", beta1=0.99, learning_rate=0.002, batch_size=200).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..settings import AtLeastOne, Positive, Rate
from .dirichlet import DirichletVAE, Estimator


@dataclass(eq=False, repr=False, kw_only=True)
class ProdLDA(DirichletVAE):
    """Product of experts over words (Srivastava & Sutton 2017): dense over the vocabulary, one batch at a time.

    The settings are those of DirichletVAE and NeuralTopicModel; only defaults differ.
    """

    estimator: Estimator = "laplace"
    decoder: Literal["mixture", "product"] = "product"
    alpha: Positive | None = 0.5
    topic_gain: Positive = 4.0
    batch_norm: bool = False
    dropout: Rate = 0.0
    epochs: AtLeastOne = 30
    min_diversity: Rate = 0.0  # holding a product's topics apart cost a third of their coherence


@dataclass(eq=False, repr=False, kw_only=True)
class NVLDA(DirichletVAE):
    """Mixture of topics (Srivastava & Sutton 2017).

    The settings are those of DirichletVAE and NeuralTopicModel; only defaults differ.
    """

    estimator: Estimator = "laplace"
