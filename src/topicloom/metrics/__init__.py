"""Measures: pure functions on arrays and word lists, which need only NumPy, SciPy and, for classes, scikit-learn."""

from .clustering import (
    adjusted_rand_index,
    classification_accuracy,
    cross_validated_accuracy,
    normalised_mutual_information,
    purity,
)
from .coherence import (
    c_npmi,
    c_uci,
    c_v,
    c_w2v,
    document_npmi,
    u_mass,
)
from .collapse import (
    active_topics,
    frequent_mass,
    kl_per_dimension,
    units_by_divergence,
    units_by_variance,
)
from .cooccurrence import Reference
from .diversity import (
    duplicate_topics,
    embedding_diversity,
    inverted_rbo,
    rank_biased_overlap,
    redundancy,
    topic_diversity,
    topic_uniqueness,
)
from .measured import Measured
from .perplexity import Average, completion_split, perplexity
from .pipeline import Coherence
from .stability import (
    Matching,
    Stability,
    jensen_shannon,
    match_topics,
    stability,
)

__all__ = [
    "Average",
    "Coherence",
    "Matching",
    "Measured",
    "Reference",
    "Stability",
    "active_topics",
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
    "match_topics",
    "normalised_mutual_information",
    "perplexity",
    "purity",
    "rank_biased_overlap",
    "redundancy",
    "stability",
    "topic_diversity",
    "topic_uniqueness",
    "u_mass",
    "units_by_divergence",
    "units_by_variance",
]
