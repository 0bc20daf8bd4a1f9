"""GSM: the Gaussian softmax topic model.

Miao, Grefenstette & Blunsom 2017, "Discovering Discrete Latent Topics with Neural Variational Inference". The code of a
document is z ~ N(mu(x), diag sigma^2(x)); theta = softmax(W z) and p(w | theta) = theta beta.

The defaults depart from the paper as follows; the settings in parentheses are the paper's, which `as_published` has:
- z has one dimension for each topic, and W is a learned multiple of the identity (latent_size=L has a matrix).
- Topics are deviations from the word frequencies of the corpus (background=False).
- Training starts at clusters of documents (start="random").
- theta = softmax(W z + b) with learned shares b (learn_shares=False), and training starts with spare topics
  (spare_topics=0), so that topics can be of different sizes.
- The mean and the log-variance are batch-normalised (code_norm="none"), and half of a document's words are hidden from
  the encoder during training (input_dropout=0). Both improve the topics and the inference on new text.
- The weight of the divergence rises to 1 in the first three quarters of the epochs (kl_warmup=0).
- A term of the loss keeps topics apart (min_diversity=0).
- Topics are learned ten times as fast as the encoder (topic_gain=1), which receives log(1 + x) (encoder_input="l1"),
  and Adam's learning rate goes through one cycle (schedule="constant").
With prior="laplace", or with an alpha, it is the same model as NVLDA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..errors import SettingError
from ..nn.decoders import Decoder, MixtureDecoder, MLPDecoder
from ..nn.layers import linear
from ..nn.posteriors import NormalPrior, laplace_dirichlet, standard_normal
from ..settings import AtLeastOne, DirichletParameter
from .autoencoders import GaussianNetwork, VariationalTopicModel
from .neural import PLAIN_VARIATIONAL, UsedIf
from .words import Words

_ALPHA = 0.3  # the default alpha of the "laplace" prior
_SPREAD = 1.5  # the factor of the code at the start of training


class GSMNetwork(GaussianNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> theta = softmax(W z + b) -> words.

    Args:
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights.
        scaled: whether code_norm="mean" has learned scales.
    """

    def __init__(self, settings: GSM, words: Words, generator: torch.Generator, *, scaled: bool = True) -> None:
        decoder, prior = _decoder(settings, words, generator), _prior(settings)
        super().__init__(decoder, prior, settings, words, generator, scaled=scaled)
        projected = settings.latent_size is not None
        self.projection = linear(len(prior.var), settings.n_topics, generator, bias=False) if projected else None
        fixed = projected or settings.has_laplace_prior
        self.spread = None if fixed else nn.Parameter(torch.tensor(_SPREAD))  # () the factor of z

    def to_theta(self, z: Tensor) -> Tensor:
        """Return softmax(W z + b), where W can be a multiple of the identity: (B, L) -> (B, K)."""
        if self.projection is not None:
            z = self.projection(z)  # (B, K)
        elif self.spread is not None:
            z = self.spread * z
        return super().to_theta(z)


@dataclass(eq=False, repr=False, kw_only=True)
class GSM(VariationalTopicModel):
    """Gaussian softmax topic model (Miao, Grefenstette & Blunsom 2017).

    The settings that the variational models share are described in `help(topicloom.VariationalTopicModel)`.

    Shape args:
        latent_size: the number of dimensions of the code, which a matrix maps to the topics. None gives each topic one
            dimension, and with the "standard" prior one learned factor replaces the matrix. A size needs the "standard"
            prior, because the "laplace" prior has one dimension for each topic.
        decoder: "mixture" mixes the topics' word distributions, theta beta. "mlp" adds a hidden layer; its topics are
            read from documents that consist of one topic, and each batch takes memory in proportion to the vocabulary.
        decoder_size: the width of the hidden layer of the "mlp" decoder.

    Prior args:
        prior: the prior of a document's code. "standard" is the N(0, I) of the paper; "laplace" approximates a
            Dirichlet. None is "laplace" if `alpha` is given, and else "standard".
        alpha: the parameter of the Dirichlet that the "laplace" prior approximates, the same for all topics; None is
            0.3. A smaller value gives documents fewer topics.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.GSM(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
        >>> len(model.topics(top_n=5)[0])
        5
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "encoder_input": "l1",
        "prior": "standard",
        "latent_size": 50,
        "hidden_size": 256,
        "activation": "relu",
        "batch_size": 64,
        "learning_rate": 5e-3,
        "epochs": 200,
    }

    used_if: ClassVar[UsedIf] = {"decoder_size": ("without `decoder='mlp'`", lambda model: model.decoder == "mlp")}

    prior: Literal["laplace", "standard"] | None = None
    alpha: DirichletParameter | None = None
    latent_size: Annotated[int, Field(ge=2)] | None = None
    decoder: Literal["mixture", "mlp"] = "mixture"
    decoder_size: AtLeastOne = 256

    def check_combinations(self) -> None:
        super().check_combinations()
        if self.prior == "standard" and self.alpha is not None:
            raise SettingError('`alpha` is a parameter of `prior="laplace"`; leave one of them out')
        if self.latent_size is not None and self.has_laplace_prior:
            raise SettingError(
                '`latent_size` needs `prior="standard"`, because the "laplace" prior has one dimension for each topic'
            )

    @property
    def has_laplace_prior(self) -> bool:
        """Whether the prior is the Laplace approximation of a Dirichlet."""
        return self.prior == "laplace" or (self.prior is None and self.alpha is not None)

    def build_network(self, words: Words, generator: torch.Generator) -> GSMNetwork:
        return GSMNetwork(self, words, generator)


def _prior(settings: GSM) -> NormalPrior:
    n_latent = settings.latent_size or settings.n_topics
    if settings.has_laplace_prior:
        return laplace_dirichlet(torch.full((n_latent,), settings.alpha or _ALPHA))
    return standard_normal(n_latent)


def _decoder(settings: GSM, words: Words, generator: torch.Generator) -> Decoder:
    if settings.decoder == "mixture":
        return MixtureDecoder(settings.build_topics(words, generator))
    if settings.seed_words:
        raise SettingError('`decoder="mlp"` has no topic-word matrix to seed; leave `seed_words` out')
    background, gain, scale = settings.background_logits(words), settings.topic_gain, settings.topic_scale
    return MLPDecoder(background, settings.n_topics, settings.decoder_size, generator, gain=gain, scale=scale)
