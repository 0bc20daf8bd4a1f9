"""A topic model of your own: a network that learns, and an estimator that lists its settings.

docs/your-own-model.md explains every part. Run it: python examples/own_model.py
"""

from dataclasses import dataclass

import torch

import topicloom as tl
from topicloom.nn.decoders import FreeTopics, MixtureDecoder
from topicloom.nn.encoders import GaussianHead
from topicloom.nn.network import VariationalNetwork
from topicloom.nn.posteriors import GaussianPosterior, standard_normal
from topicloom.settings import Positive


class SharpNetwork(VariationalNetwork):
    """z ~ N(0, I); theta = softmax(sharpness * z); p(word | theta) = theta @ topics."""

    def __init__(self, model, words, generator):
        topics = FreeTopics(model.background_logits(words), model.n_topics, generator, seeds=words.seeds)
        encoder = model.build_encoder(words, generator)
        super().__init__(
            MixtureDecoder(topics),
            encoder,
            model.build_separation_term(words),
            criterion=model.criterion,
            n_samples=model.n_samples,
        )
        self.prior = standard_normal(model.n_topics)
        self.head = GaussianHead(model.hidden_size, self.prior.var, generator)
        self.sharpness = model.sharpness

    def to_theta(self, z):
        return torch.softmax(self.sharpness * z, dim=1)  # (B, K) -> (B, K)

    def posterior(self, batch):
        hidden = self.encoder(batch, self.noise)  # (B, H)
        mean, log_var = self.head(hidden)  # (B, K), (B, K)
        return GaussianPosterior(mean, log_var, self.prior, self.to_theta)

    def prior_theta(self):
        return self.to_theta(self.prior.mean[None])[0]  # (K,)


@dataclass(eq=False, repr=False, kw_only=True)
class SharpTM(tl.VariationalTopicModel):
    """A topic model whose documents are sharply divided between topics.

    Args:
        sharpness: the factor of a document's code before the softmax. A larger value gives documents fewer topics.
    """

    sharpness: Positive = 2.0

    def build_network(self, words, generator):
        return SharpNetwork(self, words, generator)


def main(epochs: int = 60) -> list[list[str]]:
    model = SharpTM(n_topics=10, epochs=epochs, random_state=0).fit(tl.datasets.python_docs())
    topics = model.topics(top_n=8)
    for number, words in enumerate(topics):
        print(number, *words)
    return topics


if __name__ == "__main__":
    main()
