"""How a fitted model looks in a notebook: its settings and its topics. Before `fit`, scikit-learn shows its diagram."""

from __future__ import annotations

from typing import Any

from ..display import html_table

_WORDS = 10


class InNotebook:
    """The HTML of a model."""

    def _repr_html_(self) -> str:
        model: Any = self
        if not hasattr(model, "components_"):
            found: str = model._repr_mimebundle_().get("text/html", "")
            return found
        rows = zip(range(len(model.components_)), model.topic_names_, model.topics(_WORDS), strict=True)
        n_topics, n_words = model.components_.shape
        return html_table(
            ["topic", "name", "words"],
            list(rows),
            repr(model),
            f"{n_topics} topics over {n_words:,} words, of {model.n_documents_:,} documents",
        )

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if hasattr(self, "components_") and "text/html" in bundle:
            bundle["text/html"] = self._repr_html_()
        return bundle
