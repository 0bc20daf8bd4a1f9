"""Agreement of topics with classes that people assigned to the documents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from .measured import Measured

Array = npt.NDArray[Any]


def purity(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """Share of documents that belong to the most common class of their cluster.

    It rises with the number of clusters, and is 1 if each document has a cluster of its own.

    Args:
        labels: (D,) the class of each document.
        clusters: (D,) the cluster of each document, such as its main topic, theta.argmax(axis=1).

    Returns:
        Measured, with the numbers of documents, classes and clusters in its settings; 0 if there are no documents.

    Source: Manning, Raghavan & Schütze 2008, section 16.3.
    """
    table = _contingency(labels, clusters)
    n_docs = int(table.sum())
    value = float(table.max(axis=0).sum() / n_docs) if n_docs else 0.0
    return Measured(value, documents=n_docs, classes=table.shape[0], clusters=table.shape[1])


def normalised_mutual_information(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """Mutual information of classes and clusters, divided by the mean of their entropies; from 0 to 1.

    It is 1 if there is a single class and a single cluster, as in scikit-learn.

    Args, Returns: as for `purity`.

    Source: Strehl & Ghosh 2002, with the arithmetic mean, which is scikit-learn's default.
    """
    from sklearn.metrics import normalized_mutual_info_score

    return _agreement(normalized_mutual_info_score, labels, clusters)


def adjusted_rand_index(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """Agreement of classes and clusters about pairs of documents, corrected for chance; at most 1.

    Args, Returns: as for `purity`.

    Source: Hubert & Arabie 1985.
    """
    from sklearn.metrics import adjusted_rand_score

    return _agreement(adjusted_rand_score, labels, clusters)


def classification_accuracy(
    theta_train: Array, labels_train: npt.ArrayLike, theta_test: Array, labels_test: npt.ArrayLike, c: float = 10.0
) -> Measured:
    """Share of test documents whose class a logistic regression on theta predicts correctly.

    Args:
        theta_train: (D, K) topic shares of the training documents.
        labels_train: (D,) their classes.
        theta_test: (E, K) topic shares of the test documents.
        labels_test: (E,) their classes. A class that no training document has is never predicted correctly.
        c: inverse strength of the L2 penalty.

    Returns:
        Measured, with the numbers of documents on both sides in its settings; 0 if either side has no documents.
    """
    train, test = np.asarray(labels_train), np.asarray(labels_test)
    settings: dict[str, Any] = {
        "classifier": "logistic regression",
        "c": c,
        "training_documents": len(train),
        "documents": len(test),
    }
    if not len(train) or not len(test):
        return Measured(0.0, **settings)
    one_class = len(np.unique(train)) == 1  # which a logistic regression refuses
    predicted = np.full(len(test), train[0]) if one_class else _predicted(theta_train, train, c, theta_test)
    return Measured(float((predicted == test).mean()), **settings)


def cross_validated_accuracy(
    theta: Array, labels: npt.ArrayLike, n_folds: int = 5, random_state: int = 0, c: float = 10.0
) -> Measured:
    """`classification_accuracy` by cross-validation, in folds that have the same proportions of classes.

    Args:
        theta: (D, K) topic shares.
        labels: (D,) classes. If the most common class has fewer documents than there are folds, fewer folds are made.
        n_folds: the number of folds.
        random_state: the seed of the division into folds.
        c: inverse strength of the L2 penalty.

    Returns:
        Measured, with the number of folds in its settings; 0 if no class has two documents.
    """
    from sklearn.model_selection import StratifiedKFold

    classes = np.asarray(labels)
    most = int(np.unique(classes, return_counts=True)[1].max(initial=0))
    folds = min(n_folds, most)
    settings: dict[str, Any] = {
        "classifier": "logistic regression",
        "c": c,
        "folds": folds,
        "random_state": random_state,
    }
    settings |= {"documents": len(classes)}
    if folds < 2:
        return Measured(0.0, **settings)
    right = 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # its documents count as wrong
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=random_state).split(theta, classes):
            right += len(test) * classification_accuracy(theta[train], classes[train], theta[test], classes[test], c)
    return Measured(right / len(classes), **settings)


def _predicted(theta: Array, labels: Array, c: float, new: Array) -> Array:
    from sklearn.linear_model import LogisticRegression

    predicted: Array = LogisticRegression(max_iter=2000, C=c).fit(theta, labels).predict(new)
    return predicted


def _agreement(score: Any, labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    classes, found = np.asarray(labels), np.asarray(clusters)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # few documents, many classes
        value = float(score(classes, found)) if len(classes) else 0.0
    settings: dict[str, Any] = {
        "documents": len(classes),
        "classes": len(np.unique(classes)),
        "clusters": len(np.unique(found)),
    }
    return Measured(value, **settings)


def _contingency(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Array:
    """(classes, clusters) the number of documents in both."""
    classes, of_class = np.unique(np.asarray(labels), return_inverse=True)
    groups, of_group = np.unique(np.asarray(clusters), return_inverse=True)
    table = np.bincount(of_class * len(groups) + of_group, minlength=len(classes) * len(groups))
    return table.reshape(len(classes), len(groups))
