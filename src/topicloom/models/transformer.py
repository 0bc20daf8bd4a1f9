"""A topic model as a transformer of scikit-learn, from documents to topic shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .inference import Array


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """What scikit-learn asks of a transformer besides `fit` and `transform`, for documents in all their forms."""

    components_: Array

    if TYPE_CHECKING:  # a method of scikit-learn, which has no types

        def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self: ...

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Learn the topics of documents, and return their topic shares.

        Args:
            X, y, options: as for `fit`.

        Returns:
            what `transform` returns.
        """
        kept = list(X) if isinstance(X, Iterator) else X  # which is read twice
        shares: Array = super().fit_transform(kept, y, **options)
        return shares

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """Return a name for each column of theta, such as "gsm0".

        Args:
            input_features: the names of the columns of counts, which are only checked; or the name of a column of
                texts, which `ColumnTransformer` gives.
        """
        of_texts = input_features is not None and len(input_features) == 1  # counts have two columns or more
        names: Array = super().get_feature_names_out(None if of_texts else input_features)
        return names
