"""BATM and GaussianBATM: bidirectional adversarial training of an encoder and a generator of documents.

Wang, Hu, Zhou, He, Xiong, Ye & Xu 2020, "Neural Topic Modeling with Bidirectional Adversarial Training". An encoder
turns a document x into theta = E(x), a generator turns theta ~ Dirichlet(alpha) into a document G(theta), and a critic
D receives pairs of both kinds. The critic maximises E[D(E(x), x)] - E[D(theta, G(theta))], and the encoder and the
generator minimise it. With the best critic it is the Wasserstein distance between the two joint distributions
(equations 5 to 7). In Gaussian-BAT, of the same paper, topics are Gaussian distributions over word vectors.

The defaults depart from the paper as follows; the settings in parentheses are the paper's:
- The encoder and the generator also learn to reconstruct x, by the term -sum_v x_v log p(v | E(x)), which makes the
  model an adversarial autoencoder on pairs. Without it, topics are less coherent (reconstruction_weight=0).
- The generator is a mixture theta beta with background frequencies, and not the softmax of a layer (background=False).
- The critic receives documents whose words are drawn from G(theta), as many as the batch's documents have, and not the
  smooth G(theta), which it would recognise by the lack of zeros. The gradient passes as if the documents were G(theta)
  itself (a straight-through estimator).
- Documents are shares of words, and not tf-idf.
- The critic is bounded by the norms of its layers, and not by clipping single weights at 0.01.
- The encoder's code is batch-normalised, and scaled to the standard deviation of the prior's Laplace approximation
  (code_norm="none" leaves out the norm).
- Training starts at clusters of documents (start="random").
- The prior follows the shares of the topics (learn_shares=False), and training starts with spare topics
  (spare_topics=0).
- A term of the loss keeps topics apart, as in the other models (min_diversity=0).
- In Gaussian-BAT, the covariances are diagonal, and word vectors are learned, from given ones if there are any
  (fixed_word_vectors=True).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..distributed.ranks import step
from ..embeddings.word_vectors import Floats
from ..nn.adversaries import PairCritic, draw_documents
from ..nn.batch import Batch
from ..nn.code_norm import PLAIN_NORMS
from ..nn.decoders import MixtureDecoder
from ..nn.gaussian_topics import GaussianTopics
from ..nn.network import Loss, Player, TopicNetwork
from ..nn.priors import laplace_dirichlet
from ..nn.samplers import DirichletSampler
from ..settings import AtLeastOne, DirichletParameter, NotNegative, Positive, Rate
from .deterministic import DeterministicNetwork
from .embedded import EmbeddedTopicModel
from .neural import NeuralTopicModel
from .published import PLAIN
from .words import Words


class BATMNetwork(DeterministicNetwork):
    """x -> h -> theta; theta -> words; and a critic of pairs (theta, words)."""

    prior: DirichletSampler

    def __init__(self, settings: BATM, words: Words, generator: torch.Generator) -> None:
        n_topics = settings.n_topics
        super().__init__(MixtureDecoder(settings.build_topics(words, generator)), settings, words, generator)
        self.critic = PairCritic(len(words), n_topics, settings.critic_size, generator)
        self.prior = DirichletSampler(n_topics, settings.alpha, follows=settings.learn_shares)
        normal = settings.code_norm not in PLAIN_NORMS
        self.spread = float(laplace_dirichlet(self.prior.alpha).var[0].sqrt()) if normal else 1.0
        self.reconstruction_weight = settings.reconstruction_weight
        self.critic_steps = settings.critic_steps

    def players(self) -> Sequence[Player]:
        others = [parameter for name, parameter in self.named_parameters() if not name.startswith("critic.")]
        return [
            Player(list(self.critic.parameters()), self.critic_loss, "critic", after=self.critic.keep_lipschitz),
            Player(others, self.loss, every=self.critic_steps),
        ]

    def critic_loss(self, batch: Batch) -> Loss:
        """Return minus the critic's gap, the difference between its values for real and for drawn pairs."""
        with torch.no_grad():
            real_theta = self.posterior(batch).point()  # (B, K)
            theta = step().drawn(self._prior_theta, batch.n_docs)  # (B, K)
            drawn = draw_documents(theta, self.topic_word(), batch.counts.totals, self.generator)
        real = self.critic(real_theta, self.critic.read(batch.counts))  # (B,)
        gap = real - self.critic(theta, self.critic.read(drawn))  # (B,)
        zero = torch.zeros_like(gap)
        return Loss(zero, zero, {"gap": -gap})

    def loss(self, batch: Batch) -> Loss:
        """Return the reconstruction and the critic's gap, which counts as nats per token.

        Outside training it is minus the bound alone, because the gap does not show the progress of training.
        """
        if not self.training:
            return Loss(-self.bound(batch, self.generator), torch.zeros_like(batch.counts.totals))
        z = self.codes(batch)  # (B, K)
        self.prior.update(step().rows(z.detach()))
        real_theta = torch.softmax(z, dim=1)  # (B, K)
        theta = step().drawn(self._prior_theta, batch.n_docs)  # (B, K)
        topic_word = self.topic_word()  # (K, V)
        drawn = draw_documents(theta, topic_word, batch.counts.totals, self.generator)
        with torch.no_grad():
            seen = self.critic.read(batch.counts), self.critic.read(drawn)  # (B, H) both
        # Drawn words have no gradient, so that of their expectation theta beta W is used. No tensor is (B, V).
        expected = theta @ (topic_word @ self.critic.words)  # (B, K) (K, V) (V, H)
        straight_through = seen[1] + expected - expected.detach()  # (B, H)
        # If documents are reconstructed, the shares follow that alone.
        compared = self.shares.unmoved(z) if self.reconstruction_weight > 0 else z  # (B, K)
        gap = self.critic(torch.softmax(compared, dim=1), seen[0]) - self.critic(theta, straight_through)  # (B,)
        score = self.decoder.score(real_theta, self.scored(batch.counts), self.criterion)  # (B,)
        return Loss(
            -self.reconstruction_weight * score,
            step().mean(batch.counts.totals) * gap,
            self.regularisation(real_theta, batch),
        )

    def _prior_theta(self, n: int) -> Tensor:
        return self.prior.sample(n, self.generator)


@dataclass(eq=False, repr=False, kw_only=True)
class BATM(NeuralTopicModel):
    """Bidirectional adversarial topic model (Wang et al. 2020), with a reconstruction term.

    The settings that all neural models share are described in `help(topicloom.NeuralTopicModel)`. The bound
    of `perplexity(X, method="bound")` is the log likelihood at the encoder's theta.

    Args:
        alpha: the Dirichlet parameter of the prior, the same for all topics. A smaller value gives documents fewer
            topics.
        reconstruction_weight: the weight of a document's reconstruction in the loss. 0 is the purely adversarial model
            of the paper.
        critic_weight: the weight of the critic's gap in the loss of the encoder and the generator. A higher weight
            keeps theta closer to the prior.
        critic_size: the width of both layers of the critic.
        critic_steps: the number of steps that the critic takes for each step of the encoder and the generator.
    """

    published: ClassVar[dict[str, Any]] = PLAIN | {
        "reconstruction_weight": 0.0,
        "critic_weight": 1.0,
        "alpha": 0.02,
        "encoder_input": "tfidf",
        "activation": "relu",
        "critic_steps": 5,
        "learning_rate": 1e-4,
        "epochs": 1000,
    }

    alpha: DirichletParameter = 0.1
    reconstruction_weight: NotNegative = 1.0
    critic_weight: NotNegative = 0.1
    critic_size: AtLeastOne = 128
    critic_steps: AtLeastOne = 1
    beta1: Rate = 0.5

    @property
    def divergence_weight(self) -> float:
        return self.critic_weight

    def build_network(self, words: Words, generator: torch.Generator) -> BATMNetwork:
        return BATMNetwork(self, words, generator)


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianBATM(BATM, EmbeddedTopicModel):
    """Gaussian-BAT (Wang et al. 2020): BATM with topics that are Gaussian distributions over word vectors.

    The settings are those of `help(topicloom.BATM)` and `help(topicloom.EmbeddedTopicModel)`. With word vectors
    that were trained on many texts, related words belong to the same topics even if they are rare in these documents.

    Attributes:
        word_embeddings_: the word vectors, (V, L) float32.
        topic_means_: the means of the topics in the same space, (K, L) float32.
        topic_scales_: their standard deviations, (K, L) float32.
    """

    published: ClassVar[dict[str, Any]] = BATM.published | {"fixed_word_vectors": True, "whiten": "none"}

    # With 300, perplexity on held-out documents of bbc-news is 4,800, and 1,030 with 100.
    default_size: ClassVar[int] = 100

    topic_gain: Positive = 0.2
    critic_weight: NotNegative = 0.3  # with .1, one of three seeds lost a planted topic (tests/test_recovery.py)

    def build_topics(self, words: Words, generator: torch.Generator) -> GaussianTopics:
        return self.topics_in_space(GaussianTopics, words, generator)

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        topics = network.get_submodule("decoder.topics")
        assert isinstance(topics, GaussianTopics)
        self.topic_means_: Floats = topics.topic_vectors.detach().cpu().numpy().copy()
        self.topic_scales_: Floats = topics.scales.detach().cpu().numpy().copy()
