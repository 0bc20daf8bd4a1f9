"""The catalogue of measures: the name, title, direction and needs of each measure of the package, once.

Evaluation, the monitors of training, comparisons, tuning, figures and reports all take their measures from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SettingError
from ..messages import nearest
from . import clustering, coherence, diversity, stability
from .cooccurrence import Reference
from .measured import Measured
from .perplexity import Average, perplexity

Array = npt.NDArray[Any]


class MeasureInputs(Protocol):
    """Everything that a measure of the catalogue can ask for.

    An implementation overrides what it can provide, and makes each attribute when it is first read. An attribute that
    it cannot provide raises InputError with a sentence that says why; that is what all attributes do here.

    Examples:
        >>> from topicloom.metrics import CATALOGUE, MeasureInputs
        >>> class Words(MeasureInputs):
        ...     topics = [["cat", "dog"], ["cat", "rain"]]
        >>> CATALOGUE["topic_diversity"].function(Words())
        0.75
    """

    @property
    def topics(self) -> Sequence[Sequence[Any]]:
        """K topics, each the words (or word ids) that describe it, best first."""
        _refuse("the topics are")

    @property
    def relevant_topics(self) -> Sequence[Sequence[Any]]:
        """The same topics with words ranked by relevance 0.6 (Sievert & Shirley 2014)."""
        _refuse("the topics by relevance are")

    @property
    def top_n(self) -> int | None:
        """The number of words of a topic to use, or None for each measure's own number."""
        return None

    @property
    def documents(self) -> Reference:
        """The reference corpus of coherence: the words that each document contains."""
        _refuse("the reference corpus is")

    @property
    def ordered_documents(self) -> Reference:
        """The reference corpus of coherence: the tokens of each document in their order."""
        _refuse("the order of words is")

    @property
    def pools(self) -> Array:
        """(M, n) documents of the reference corpus that are near each other by their vectors; -1 for none."""
        _refuse("the vectors of documents are")

    @property
    def word_vectors(self) -> Any:
        """A vector for each word, by `word_vectors[word]`."""
        _refuse("word vectors are")

    @property
    def topic_word(self) -> Array:
        """(K, V) probabilities of words in topics."""
        _refuse("the topic-word matrix is")

    @property
    def word_counts(self) -> Array:
        """(V,) tokens of each word in the training corpus."""
        _refuse("the word counts are")

    @property
    def theta(self) -> Array:
        """(D, K) topic shares of the documents that have a known word, or a vector that the model reads."""
        _refuse("the topic shares of documents are")

    @property
    def labels(self) -> Array:
        """(D,) the classes of the same documents, "" where one is unknown; at least one is known."""
        _refuse("labels are")

    @property
    def training_theta(self) -> Array:
        """(E, K) topic shares of such training documents whose class is known."""
        _refuse("the topic shares of training documents are")

    @property
    def training_labels(self) -> Array | None:
        """(E,) the classes of the same documents, or None if no other documents have labels."""
        return None

    def log_likelihood(self, method: Literal["bound", "completion"]) -> tuple[Array, Array]:
        """(D,) the log likelihood of each document, and (D,) the number of tokens that it covers."""
        _refuse("the likelihood of documents is")

    @property
    def divergence(self) -> Array:
        """(D, L) divergence of each document's posterior from the prior, in nats."""
        _refuse("the divergence of the posterior is")

    @property
    def latent_means(self) -> Array:
        """(D, L) mean of each document's posterior."""
        _refuse("the latent code is")

    @property
    def seconds(self) -> float:
        """How long the fit took."""
        _refuse("the time of the fit is")

    @property
    def other_runs(self) -> Sequence[Array]:
        """(K, V) topics of other fits of the same model, with another seed, or other order or sample of documents."""
        _refuse("the topics of other runs are")


def is_known(labels: Array) -> npt.NDArray[np.bool_]:
    """(D,) True for documents whose class is known."""
    found: npt.NDArray[np.bool_] = labels != ""
    return found


def _refuse(what: str) -> NoReturn:
    raise InputError(f"{what} not known here")


Group = Literal["coherence", "diversity", "prediction", "classes", "collapse", "cost", "stability", "own"]
Use = Literal["evaluation", "monitor", "watch", "comparison", "tuning"]

TOP_WORDS = 25  # the most words of a topic that a measure uses by default


@dataclass(frozen=True)
class Measure:
    """A measure: what it is called, what it needs, and how it is computed.

    Attributes:
        name: its key in results, history and files.
        title, title_zh: what it is called in tables and pictures, in English and in Chinese.
        better: 1 if higher is better, -1 if lower is better, 0 if neither.
        group: the kind of measure.
        needs: what it reads beside the topics: "documents" (the reference corpus), "token order" (of the reference
            corpus), "document vectors" (of the reference corpus), "word vectors", "topic-word matrix", "theta",
            "likelihood", "labels", "divergence", "latent means", "seconds" or "other runs".
        uses: where it is used: "evaluation" (`topicloom.evaluate`), "monitor" (`fit(monitor=...)`), "watch" (the
            collapse watch, during training), "comparison" and "tuning" (objectives).
        function: computes it.
        digits: decimal places in the tables of comparisons.
        count_of: what it counts, such as "topics", if it is a count; else "".
        column: its heading in the table of a comparison in the terminal; "" if that table leaves it out.

    Examples:
        >>> from topicloom.metrics import CATALOGUE
        >>> CATALOGUE["purity"].title, CATALOGUE["purity"].better, sorted(CATALOGUE["purity"].needs)
        ('purity', 1, ['labels', 'theta'])
    """

    name: str
    title: str
    title_zh: str
    better: Literal[-1, 0, 1]
    group: Group
    needs: frozenset[str]
    uses: frozenset[Use]
    function: Callable[[MeasureInputs], Measured]
    digits: int = 3
    count_of: str = ""
    column: str = ""

    @property
    def is_count(self) -> bool:
        """Whether its values are whole numbers."""
        return bool(self.count_of)

    @property
    def depends_on_documents(self) -> bool:
        """Whether a comparison measures it on held-out documents; else it is the same for all of them.

        Coherence counts words in the training documents, and diversity reads the topics alone.
        """
        return bool(self.needs & {"theta", "likelihood", "labels", "divergence", "latent means"})


def measures_of(use: Use) -> dict[str, Measure]:
    """Return the measures that are used for something, by name, in the order of the catalogue."""
    return {name: measure for name, measure in CATALOGUE.items() if use in measure.uses}


def known_measures(names: Iterable[str], known: Iterable[str], argument: str) -> list[str]:
    """Check the names of measures.

    Args:
        names: the names to check.
        known: the names that are allowed.
        argument: the argument or option that has the names, for the message.

    Returns:
        the names in their order, each once.

    Raises:
        SettingError: a name is not allowed, or `names` is a single string.
    """
    if isinstance(names, str):
        raise SettingError(f"{argument} should be a list of measures; give [{names!r}]")
    if not isinstance(names, Iterable):
        raise SettingError(f"{argument} should be a list of measures; it is {names!r}")
    allowed = list(known)
    for name in (chosen := list(dict.fromkeys(names))):
        if name not in allowed:
            raise SettingError(f"unknown measure {name!r} in {argument}; {nearest(str(name), allowed)}")
    return chosen


def _settings(inputs: MeasureInputs) -> dict[str, Any]:
    return {} if inputs.top_n is None else {"top_n": inputs.top_n}


def _of_topics(function: Callable[..., Measured]) -> Callable[[MeasureInputs], Measured]:
    return lambda inputs: function(inputs.topics, **_settings(inputs))


def _of_documents(function: Callable[..., Measured]) -> Callable[[MeasureInputs], Measured]:
    return lambda inputs: function(inputs.topics, inputs.documents, **_settings(inputs))


def _of_pools(inputs: MeasureInputs) -> Measured:
    pools = inputs.pools  # first, because the reference corpus may have none
    return coherence.pooled_npmi(inputs.topics, inputs.documents, pools, **_settings(inputs))


def _of_windows(function: Callable[..., Measured]) -> Callable[[MeasureInputs], Measured]:
    return lambda inputs: function(inputs.topics, inputs.ordered_documents, **_settings(inputs))


def _of_vectors(function: Callable[..., Measured]) -> Callable[[MeasureInputs], Measured]:
    return lambda inputs: function(inputs.topics, inputs.word_vectors, **_settings(inputs))


def _of_classes(function: Callable[..., Measured]) -> Callable[[MeasureInputs], Measured]:
    def measured(inputs: MeasureInputs) -> Measured:
        labelled = is_known(inputs.labels)
        return function(inputs.labels[labelled], inputs.theta[labelled].argmax(axis=1))

    return measured


def _perplexity(
    method: Literal["bound", "completion"], average: Average = "corpus"
) -> Callable[[MeasureInputs], Measured]:
    def measured(inputs: MeasureInputs) -> Measured:
        found = perplexity(*inputs.log_likelihood(method), average)
        found.settings["method"] = method
        return found

    return measured


def _log_perplexity(inputs: MeasureInputs) -> Measured:
    found = _perplexity("completion")(inputs)
    n_words = len(inputs.word_counts)
    return Measured(math.log(found) / math.log(n_words), **found.settings, words=n_words)


def _accuracy(inputs: MeasureInputs) -> Measured:
    labelled = is_known(inputs.labels)
    theta, labels = inputs.theta[labelled], inputs.labels[labelled]
    if inputs.training_labels is None:
        return clustering.cross_validated_accuracy(theta, labels)
    return clustering.classification_accuracy(inputs.training_theta, inputs.training_labels, theta, labels)


def _lowest_diversity(inputs: MeasureInputs) -> Measured:
    return min(diversity.topic_diversity(topics) for topics in (inputs.topics, inputs.relevant_topics))


def _measure(
    name: str,
    title: str,
    title_zh: str,
    better: Literal[-1, 0, 1],
    group: Group,
    needs: str,
    uses: str,
    function: Callable[[MeasureInputs], Measured],
    **more: Any,
) -> Measure:
    """Make an entry; needs and uses are separated by commas."""

    def words(text: str) -> frozenset[Any]:
        return frozenset(part.strip() for part in text.split(",") if part.strip())

    return Measure(name, title, title_zh, better, group, words(needs), words(uses), function, **more)


_MEASURES = (
    _measure("document_npmi", "NPMI (documents)", "NPMI（文档共现）", 1, "coherence", "documents",
             "evaluation, monitor, comparison, tuning", _of_documents(coherence.document_npmi), column="NPMI"),
    _measure("pooled_npmi", "NPMI (pooled documents)", "NPMI（近邻文档合并）", 1, "coherence",
             "documents, document vectors", "evaluation, comparison, tuning", _of_pools, column="pooled NPMI"),
    _measure("c_v", "C_v", "C_v", 1, "coherence", "token order", "evaluation, monitor, comparison, tuning",
             _of_windows(coherence.c_v)),
    _measure("c_npmi", "C_NPMI", "C_NPMI", 1, "coherence", "token order", "evaluation, monitor, comparison, tuning",
             _of_windows(coherence.c_npmi)),
    _measure("c_uci", "C_UCI", "C_UCI", 1, "coherence", "token order", "evaluation, monitor",
             _of_windows(coherence.c_uci)),
    _measure("u_mass", "UMass", "UMass", 1, "coherence", "documents", "evaluation, monitor",
             _of_documents(coherence.u_mass)),
    _measure("topic_diversity", "diversity", "多样性",
             1, "diversity", "", "evaluation, monitor, watch, comparison, tuning",
             _of_topics(diversity.topic_diversity), column="diversity"),
    _measure("topic_uniqueness", "uniqueness", "独特性", 1, "diversity", "", "evaluation, monitor, comparison, tuning",
             _of_topics(diversity.topic_uniqueness)),
    _measure("inverted_rbo", "inverted RBO", "倒置 RBO", 1, "diversity", "", "evaluation, monitor",
             _of_topics(diversity.inverted_rbo)),
    _measure("redundancy", "redundancy", "冗余度", -1, "diversity", "", "evaluation, monitor, comparison, tuning",
             _of_topics(diversity.redundancy)),
    _measure("c_w2v", "C_w2v", "C_w2v", 1, "coherence", "word vectors", "evaluation, monitor",
             _of_vectors(coherence.c_w2v)),
    _measure("embedding_diversity", "embedding diversity", "词向量多样性", 1, "diversity", "word vectors", "evaluation",
             _of_vectors(diversity.embedding_diversity)),
    _measure("perplexity_completion", "completion perplexity", "困惑度（文档补全）", -1, "prediction", "likelihood",
             "evaluation, comparison", _perplexity("completion"), digits=0, column="completion perplexity"),
    _measure("perplexity_bound", "bound perplexity", "困惑度（证据下界）", -1, "prediction", "likelihood", "evaluation",
             _perplexity("bound"), digits=0),
    _measure("perplexity_bound_by_document", "bound perplexity, by document", "困惑度（证据下界，按文档平均）",
             -1, "prediction", "likelihood",
             "evaluation", _perplexity("bound", "document"), digits=0),
    _measure("log_perplexity", "log completion perplexity / log vocabulary size", "困惑度对数与词表大小对数之比",
             -1, "prediction", "likelihood",
             "tuning", _log_perplexity),
    _measure("purity", "purity", "纯度", 1, "classes", "theta, labels", "evaluation, comparison, tuning",
             _of_classes(clustering.purity)),
    _measure("nmi", "NMI", "NMI", 1, "classes", "theta, labels", "evaluation, comparison, tuning",
             _of_classes(clustering.normalised_mutual_information), column="NMI"),
    _measure("ari", "ARI", "ARI", 1, "classes", "theta, labels", "evaluation, comparison, tuning",
             _of_classes(clustering.adjusted_rand_index)),
    _measure("accuracy", "accuracy", "分类准确率",
             1, "classes", "theta, labels", "evaluation, comparison, tuning", _accuracy,
             column="accuracy"),
    _measure("kl_per_dimension", "divergence of each latent dimension, nats", "各隐变量维度的散度（奈特）",
             0, "collapse", "divergence",
             "evaluation, watch", lambda inputs: diversity.kl_per_dimension(inputs.divergence)),
    _measure("active_units_by_divergence", "active latent dimensions (by divergence)", "活跃的隐变量维度（按散度）",
             0, "collapse", "divergence",
             "evaluation, watch", lambda inputs: diversity.active_units_by_divergence(inputs.divergence),
             count_of="latent dimensions"),
    _measure("active_units_by_variance", "active latent dimensions (by variance)", "活跃的隐变量维度（按方差）",
             0, "collapse", "latent means",
             "evaluation", lambda inputs: diversity.active_units_by_variance(inputs.latent_means),
             count_of="latent dimensions"),
    _measure("active_topics", "active topics", "活跃主题数",
             1, "collapse", "theta", "evaluation, watch, comparison, tuning",
             lambda inputs: diversity.active_topics(inputs.theta), digits=1, count_of="topics"),
    _measure("largest_share", "share of the largest topic", "最大的主题的占比", 0, "collapse", "theta",
             "evaluation, watch", lambda inputs: diversity.largest_share(inputs.theta)),
    _measure("lowest_topic_diversity", "lower diversity of two rankings", "两种排序下较低的多样性",
             1, "collapse", "", "watch",
             _lowest_diversity),
    _measure("duplicate_topics", "pairs of duplicate topics", "重复的主题对", -1, "collapse", "", "evaluation, watch",
             lambda inputs: diversity.duplicate_topics(inputs.topics), count_of="pairs of topics"),
    _measure("frequent_mass", "weight on the 50 most frequent words", "最常见的 50 个词所占权重",
             0, "collapse", "topic-word matrix",
             "evaluation, watch",
             lambda inputs: diversity.frequent_mass(inputs.topic_word, inputs.word_counts)),
    _measure("seconds", "seconds", "训练秒数", -1, "cost", "seconds", "comparison",
             lambda inputs: Measured(inputs.seconds), digits=1, column="seconds"),
    _measure("topic_distance", "distance to other seeds", "与其他随机种子的距离",
             -1, "stability", "topic-word matrix, other runs",
             "comparison", lambda inputs: stability.topic_distance(inputs.topic_word, inputs.other_runs)),
    _measure("returning_topics", "topics that return", "重现的主题",
             1, "stability", "topic-word matrix, other runs",
             "evaluation, comparison", lambda inputs: stability.returning_topics(inputs.topic_word, inputs.other_runs),
             column="return"),
)  # fmt: skip
CATALOGUE: Mapping[str, Measure] = {measure.name: measure for measure in _MEASURES}
