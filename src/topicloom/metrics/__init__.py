"""Measures of topics: pure functions on arrays and word lists, and a catalogue of all of them.

The functions need NumPy and SciPy only, and scikit-learn for measures of classes. Each returns a `Measured`: a number
with the settings it depends on.
"""

from .catalogue import CATALOGUE, Measure, MeasureInputs
from .clustering import (
    adjusted_rand_index,
    classification_accuracy,
    cross_validated_accuracy,
    normalised_mutual_information,
    purity,
)
from .coherence import c_npmi, c_uci, c_v, c_w2v, document_npmi, pooled_npmi, u_mass
from .cooccurrence import Reference
from .diversity import (
    active_topics,
    active_units_by_divergence,
    active_units_by_variance,
    duplicate_topics,
    embedding_diversity,
    frequent_mass,
    inverted_rbo,
    kl_per_dimension,
    largest_share,
    rank_biased_overlap,
    redundancy,
    topic_diversity,
    topic_uniqueness,
)
from .measured import Measured
from .perplexity import Average, completion_split, perplexity
from .stability import (
    Matching,
    Stability,
    TopicReturns,
    jensen_shannon,
    match_topics,
    returning_topics,
    stability,
    topic_distance,
    topic_returns,
    topic_similarity,
)

__all__ = [
    "CATALOGUE",
    "Average",
    "Matching",
    "Measure",
    "MeasureInputs",
    "Measured",
    "Reference",
    "Stability",
    "TopicReturns",
    "active_topics",
    "active_units_by_divergence",
    "active_units_by_variance",
    "adjusted_rand_index",
    "c_npmi",
    "c_uci",
    "c_v",
    "c_w2v",
    "classification_accuracy",
    "completion_split",
    "cross_validated_accuracy",
    "document_npmi",
    "duplicate_topics",
    "embedding_diversity",
    "frequent_mass",
    "inverted_rbo",
    "jensen_shannon",
    "kl_per_dimension",
    "largest_share",
    "match_topics",
    "normalised_mutual_information",
    "perplexity",
    "pooled_npmi",
    "purity",
    "rank_biased_overlap",
    "redundancy",
    "returning_topics",
    "stability",
    "topic_distance",
    "topic_diversity",
    "topic_returns",
    "topic_similarity",
    "topic_uniqueness",
    "u_mass",
]
