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
- The critic receives documents whose words are drawn from G(theta), with the lengths of the batch's documents. It would
  recognise the smooth G(theta) by its lack of zeros. The gradient passes as if the documents were G(theta) itself (a
  straight-through estimator).
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
import torch.nn.functional as F
from torch import Tensor, nn

from ..distributed import step
from ..embeddings.word_vectors import Floats
from ..nn.decoders import GaussianTopics, MixtureDecoder
from ..nn.encoders import TINY_TOTAL
from ..nn.layers import PLAIN_NORMS, linear, normal_parameter
from ..nn.network import Loss, Player, TopicNetwork
from ..nn.posteriors import laplace_dirichlet
from ..nn.samplers import DirichletSampler
from ..nn.sparse import Batch, SparseCounts, bag_product, starts_of
from ..settings import AtLeastOne, DirichletParameter, NotNegative, Positive, Rate
from ..training.monitors import CollapseSign
from .autoencoders import DeterministicNetwork
from .base import UsedIf
from .etm import EmbeddedTopicModel
from .neural import PLAIN, NeuralTopicModel
from .words import Words

# The critic, and the documents that are drawn for it
#
# Drawn documents are sparse, like real ones. A critic would recognise a smooth p(w | theta) by its lack of zeros.

_SLOPE = 0.1  # the slope of the leaky rectifiers below zero
_OF_BATCH = 1 << 20  # the most tokens that are drawn for a batch
_OF_DOCUMENT = 10_000  # the least number of tokens that are drawn for a longer document


class PairCritic(nn.Module):
    """D(theta, x) = v . f(A f(x W / n + theta U + b) + a), where f is a leaky rectifier and n the tokens of x.

    D changes by at most the L1 distance of the documents' word shares plus the L1 distance of theta. This makes it
    Lipschitz, as Arjovsky et al. 2017 require: the rows of W and U stay in the unit ball, and the norms of A and v stay
    at or below 1. Unlike the clipping of single weights, this does not limit the scale of a unit.

    Args:
        n_words: the size of the vocabulary V.
        n_topics: the number of topics K.
        n_hidden: the width H of both layers.
        generator: draws the initial weights.
    """

    direction: Tensor  # (H,)

    def __init__(self, n_words: int, n_topics: int, n_hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.words = normal_parameter(n_words, n_hidden, scale=n_hidden**-0.5, generator=generator)
        self.topics = normal_parameter(n_topics, n_hidden, scale=n_hidden**-0.5, generator=generator)
        self.bias = nn.Parameter(torch.zeros(n_hidden))
        self.hidden = linear(n_hidden, n_hidden, generator)
        self.out = normal_parameter(n_hidden, scale=n_hidden**-0.5, generator=generator)
        # The largest singular vector of A changes little in a step, so one power iteration a step follows it.
        self.register_buffer("direction", F.normalize(torch.ones(n_hidden), dim=0))

    def read(self, counts: SparseCounts) -> Tensor:
        """Return x W / n, the mean of a document's words: (B, H)."""
        shares = counts.values / counts.totals.clamp_min(TINY_TOTAL)[counts.documents]  # (N,)
        return bag_product(self.words, shares, counts)

    def forward(self, theta: Tensor, document: Tensor) -> Tensor:
        """Return a number for each pair, which is higher the more real the pair appears: (B,).

        Args:
            theta: (B, K), rows sum to 1.
            document: (B, H), as `read` returns it.
        """
        h = F.leaky_relu(document + theta @ self.topics + self.bias, _SLOPE)  # (B, H)
        return F.leaky_relu(self.hidden(h), _SLOPE) @ self.out

    @torch.no_grad()
    def keep_lipschitz(self) -> None:
        """Scale down the weights that have left their bounds."""
        for table in (self.words, self.topics):
            table.div_(table.norm(dim=1, keepdim=True).clamp_min(1))
        weight = self.hidden.weight  # (H, H)
        self.direction.copy_(F.normalize(weight.mT @ (weight @ self.direction), dim=0))
        weight.div_((weight @ self.direction).norm().clamp_min(1))
        self.out.div_(self.out.norm().clamp_min(1))


@torch.no_grad()
def draw_documents(theta: Tensor, topic_word: Tensor, lengths: Tensor, generator: torch.Generator) -> SparseCounts:
    """Draw documents from a topic model: for each token a topic from theta, and a word from this topic.

    Args:
        theta: (B, K), rows sum to 1.
        topic_word: (K, V), rows sum to 1.
        lengths: (B,) the tokens of each document; fractions are rounded up.
        generator: draws the topics and words.

    Returns:
        B documents. A word that is drawn twice has two entries of 1. To bound memory, a very long document may have
        fewer tokens, but at least 10,000. Their weights sum to its length.
    """
    generator = step().own(generator)
    n_docs, n_words = len(theta), topic_word.shape[1]
    whole = lengths.ceil()  # (B,)
    n_drawn = whole.clamp(max=max(_OF_DOCUMENT, _OF_BATCH // max(n_docs, 1)))  # (B,)
    rows = torch.repeat_interleave(n_drawn.long())  # (N,) document of each token
    topics = _choose(theta, rows, generator)  # (N,)
    words = _choose(topic_word, topics, generator)  # (N,)
    return SparseCounts(
        indices=words,
        values=(whole / n_drawn)[rows].to(theta.dtype),  # (N,) 1 for all but very long documents
        offsets=starts_of(rows, n_docs),
        n_words=n_words,
    )


def _choose(probabilities: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a column for each of `rows` (N,) from the distribution in that row of `probabilities` (M, C): (N,)."""
    noise = _uniform(len(rows), generator, probabilities.device)  # (N,)
    # In single precision, the cumulative sums would lose rare words.
    total = probabilities.to(noise.device, torch.float64).cumsum(1)
    total = total / total[:, -1:] + torch.arange(len(total), device=noise.device)[:, None]  # (M, C), always rising
    places = rows.to(noise.device)
    drawn = torch.searchsorted(total.flatten(), places + noise, right=True)  # (N,) in the flattened table
    columns = probabilities.shape[1]
    return (drawn - places * columns).clamp(0, columns - 1).to(rows.device)


def _uniform(n: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Draw n numbers from [0, 1) in double precision: on `device` if it supports that, and otherwise on the CPU."""
    if _has_double_precision(device):
        return torch.rand(n, generator=generator, dtype=torch.float64, device=device)
    halves = torch.rand(2, n, generator=generator, device=device).cpu().double()  # (2, n) multiples of 2^-24
    return halves[0] + halves[1] * 2.0**-24


def _has_double_precision(device: torch.device) -> bool:
    return device.type != "mps"


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
        # Drawn words have no gradient, so the gradient of their expectation theta beta W is used. No tensor is (B, V).
        expected = theta @ (topic_word @ self.critic.words)  # (B, K) (K, V) (V, H)
        straight_through = seen[1] + expected - expected.detach()  # (B, H)
        # If documents are reconstructed, only the reconstruction moves the shares.
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

    Shape args:
        critic_size: the width of both layers of the critic.

    Prior args:
        alpha: the Dirichlet parameter of the prior, the same for all topics. A smaller value gives documents fewer
            topics.

    Training args:
        reconstruction_weight: the weight of a document's reconstruction in the loss. 0 is the purely adversarial model
            of the paper.
        critic_weight: the weight of the critic's gap in the loss of the encoder and the generator. A higher weight
            keeps theta closer to the prior.
        critic_steps: the number of steps that the critic takes for each step of the encoder and the generator.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.BATM(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
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

    used_if: ClassVar[UsedIf] = {
        name: ("with `reconstruction_weight=0`", lambda model: model.reconstruction_weight > 0)
        for name in ("criterion", "target")
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

    def helpful_settings(self, sign: CollapseSign) -> dict[str, Any]:
        helpful = super().helpful_settings(sign)
        if sign.kind != "unused topics":
            return helpful
        # A prior that follows the topics' shares draws documents to the large ones; an even one spreads them.
        return {"critic_weight": (0.5 if self.learn_shares else 2) * self.critic_weight} | helpful

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

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.GaussianBATM(n_topics=3, epochs=3, random_state=0, embedding_size=10).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
        >>> model.topic_means_.shape, model.topic_scales_.shape
        ((3, 10), (3, 10))
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
