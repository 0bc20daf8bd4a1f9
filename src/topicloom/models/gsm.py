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

The paper has two further constructions of theta, in which the topics break off a stick in turn: theta_k = eta_k
prod_{i<k} (1 - eta_i), and the last topic gets the rest. In GSB (construction="stick_breaking"), eta = sigmoid(W z). In
RSB (construction="recurrent"), eta_k = sigmoid(h_k z), where h_k is the state of a recurrent network after k steps. By
default, b adds the logit with which the sticks of z = 0 are softmax(b); the paper has no b, so that topic k expects
half of what is left (learn_shares=False).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..errors import SettingError
from ..nn.decoders import Decoder, MixtureDecoder
from ..nn.layers import linear, normal_parameter, stick_breaking
from ..nn.posteriors import NormalPrior, laplace_dirichlet, standard_normal
from ..nn.sparse import Batch
from ..settings import AtLeastOne, DirichletParameter
from ..training.monitors import CollapseSign
from .autoencoders import GaussianNetwork, VariationalTopicModel
from .base import UsedIf
from .neural import PLAIN_VARIATIONAL, mlp_decoder
from .words import Words

_PAPER: dict[str, Any] = PLAIN_VARIATIONAL | {
    "encoder_input": "l1",
    "prior": "standard",
    "latent_size": 50,
    "hidden_size": 256,
    "activation": "relu",
    "batch_size": 64,
    "learning_rate": 5e-3,
    "epochs": 200,
}
_ALPHA = 0.3  # the default alpha of the "laplace" prior
_SPREAD = 1.5  # the factor of the code at the start of training


class RecurrentLogits(nn.Module):
    """<h_k, z> for h_{k+1} = tanh(A h_k + a), where h_1, A and a are learned.

    Args:
        n_latent: the number of dimensions L of z and of the states.
        n_steps: the number of states K.
        generator: draws the initial weights.

    >>> import torch
    >>> RecurrentLogits(3, 5, torch.Generator().manual_seed(0))(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(self, n_latent: int, n_steps: int, generator: torch.Generator) -> None:
        super().__init__()
        self.n_steps = n_steps
        self.first = normal_parameter(n_latent, scale=n_latent**-0.5, generator=generator)  # (L,) h_1
        self.next = linear(n_latent, n_latent, generator)

    def forward(self, z: Tensor) -> Tensor:
        """Return the products, (B, L) -> (B, K)."""
        states: list[Tensor] = [self.first]
        while len(states) < self.n_steps:
            states.append(torch.tanh(self.next(states[-1])))
        return z @ torch.stack(states).mT


class GSMNetwork(GaussianNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> theta = softmax(W z + b) -> words.

    With another construction, theta is stick_breaking(W z + b'), or that of `RecurrentLogits` in place of W z.

    Args:
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights.
        scaled: whether code_norm="mean" has learned scales.
    """

    has_compiled_loss = True

    def __init__(self, settings: GSM, words: Words, generator: torch.Generator, *, scaled: bool = True) -> None:
        decoder, prior = _decoder(settings, words, generator), _prior(settings)
        super().__init__(decoder, prior, settings, words, generator, scaled=scaled)
        self.construction, self.has_shares = settings.construction, settings.learn_shares
        projected = settings.latent_size is not None or self.construction != "softmax"
        self.projection: nn.Module | None = _projection(settings, len(prior.var), generator) if projected else None
        fixed = projected or settings.has_laplace_prior
        self.spread = None if fixed else nn.Parameter(torch.tensor(_SPREAD))  # () the factor of z

    def to_theta(self, z: Tensor) -> Tensor:
        """Return softmax(W z + b), where W can be a multiple of the identity, or the other constructions: (B, K)."""
        if self.construction != "softmax":
            assert self.projection is not None
            return stick_breaking(self.projection(z)[:, :-1] + (self._usual_logits() if self.has_shares else 0.0))
        if self.projection is not None:
            z = self.projection(z)  # (B, K)
        elif self.spread is not None:
            z = self.spread * z
        return super().to_theta(z)

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Limit the shares, unless they are those of sticks."""
        if self.construction == "softmax":
            super().end_training(documents)

    def code_factor(self) -> Tensor | None:
        is_scaled = self.construction == "softmax" and self.projection is None
        return super().code_factor() if self.spread is None and is_scaled else self.spread

    def _usual_logits(self) -> Tensor:
        """Return the logits of sticks for which `stick_breaking` gives the shares softmax(b), (K - 1,)."""
        b = self.shares.logits  # (K,)
        return b[:-1] - b.flip(0).logcumsumexp(0).flip(0)[1:]


@dataclass(eq=False, repr=False, kw_only=True)
class GSM(VariationalTopicModel):
    """Gaussian softmax topic model (Miao, Grefenstette & Blunsom 2017).

    The settings that the variational models share are described in `help(topicloom.VariationalTopicModel)`.

    Shape args:
        latent_size: the number of dimensions of the code, which a matrix maps to the topics. None gives each topic one
            dimension, and with the "standard" prior one learned factor replaces the matrix. A size needs the "standard"
            prior, because the "laplace" prior has one dimension for each topic.
        construction: how theta is made of the code z. "softmax" is GSM. "stick_breaking" is GSB of the same paper: in
            turn, each topic gets a fraction sigmoid(W z) of what the topics before it have left. "recurrent" is RSB: a
            recurrent network gives the vectors by which z is multiplied, so that the number of weights does not depend
            on the number of topics. Both need the "standard" prior, and have no spare topics.
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

    published: ClassVar[dict[str, Any]] = _PAPER
    recipes: ClassVar[dict[str, dict[str, Any]]] = {
        "gsb": _PAPER | {"construction": "stick_breaking"},
        "rsb": _PAPER | {"construction": "recurrent"},
    }

    used_if: ClassVar[UsedIf] = {
        "decoder_size": ("without `decoder='mlp'`", lambda model: model.decoder == "mlp"),
        "spare_topics": ("without `construction='softmax'`", lambda model: model.construction == "softmax"),
    }

    prior: Literal["laplace", "standard"] | None = None
    alpha: DirichletParameter | None = None
    latent_size: Annotated[int, Field(ge=2)] | None = None
    construction: Literal["softmax", "stick_breaking", "recurrent"] = "softmax"
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

        if self.construction != "softmax" and self.has_laplace_prior:
            raise SettingError(
                f'`construction="{self.construction}"` needs `prior="standard"`, because the "laplace" prior is one of '
                "the softmax; leave `alpha` and `prior` out"
            )

    def _n_spare(self, n_words: int) -> int:
        # A removed topic would leave its part of the stick to the topics after it, and not to those that resemble it.
        return super()._n_spare(n_words) if self.construction == "softmax" else 0

    def helpful_settings(self, sign: CollapseSign) -> dict[str, Any]:
        helpful = super().helpful_settings(sign)
        if (
            self.construction != "softmax"
            and not self.learn_shares
            and sign.kind in ("unused topics", "duplicate topics", "similar topics")
        ):
            helpful.pop("epochs", None)  # the prior leaves later topics next to nothing, however long training is
        return helpful

    @property
    def has_laplace_prior(self) -> bool:
        """Whether the prior is the Laplace approximation of a Dirichlet."""
        return self.prior == "laplace" or (self.prior is None and self.alpha is not None)

    def build_network(self, words: Words, generator: torch.Generator) -> GSMNetwork:
        return GSMNetwork(self, words, generator)


def _projection(settings: GSM, n_latent: int, generator: torch.Generator) -> nn.Module:
    """Return the map from the code to the logits of the topics, of which sticks leave out the last one."""
    if settings.construction == "recurrent":
        return RecurrentLogits(n_latent, settings.n_topics, generator)
    return linear(n_latent, settings.n_topics, generator, bias=False)


def _prior(settings: GSM) -> NormalPrior:
    n_latent = settings.latent_size or settings.n_topics
    if settings.has_laplace_prior:
        return laplace_dirichlet(torch.full((n_latent,), settings.alpha or _ALPHA))
    return standard_normal(n_latent)


def _decoder(settings: GSM, words: Words, generator: torch.Generator) -> Decoder:
    if settings.decoder == "mlp":
        return mlp_decoder(settings, words, settings.decoder_size, "softplus", generator)
    return MixtureDecoder(settings.build_topics(words, generator))
