"""How well topics agree with classes that people gave the documents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from .measured import Measured

Array = npt.NDArray[Any]


def purity(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """The share of documents that are of the commonest class of their cluster.

    It rises with the number of clusters, and is 1 when each document has its own.

    Args:
        labels: (D,) the class of each document.
        clusters: (D,) its cluster, such as theta.argmax(axis=1).

    Returns:
        Measured, with the numbers of documents, classes and clusters; 0 without documents.

    Source: Manning, Raghavan & Schütze 2008, section 16.3.
    """
    table = _contingency(labels, clusters)
    n_docs = int(table.sum())
    value = float(table.max(axis=0).sum() / n_docs) if n_docs else 0.0
    return Measured(value, documents=n_docs, classes=table.shape[0], clusters=table.shape[1])


def normalised_mutual_information(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """Mutual information of classes and clusters over the mean of their entropies, from 0 to 1.

    1 where there is one class and one cluster, as scikit-learn has it.

    Args, Returns: as for `purity`.

    Source: Strehl & Ghosh 2002, with the arithmetic mean, as scikit-learn's default.
    """
    from sklearn.metrics import normalized_mutual_info_score

    return _agreement(normalized_mutual_info_score, labels, clusters)


def adjusted_rand_index(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """The share of pairs of documents that classes and clusters treat alike, less what chance gives: at most 1.

    Args, Returns: as for `purity`.

    Source: Hubert & Arabie 1985.
    """
    from sklearn.metrics import adjusted_rand_score

    return _agreement(adjusted_rand_score, labels, clusters)


def classification_accuracy(
    theta_train: Array, labels_train: npt.ArrayLike, theta_test: Array, labels_test: npt.ArrayLike, c: float = 10.0
) -> Measured:
    """The share of test documents whose class a logistic regression on theta tells.

    Args:
        theta_train: (D, K) shares, and labels_train (D,) classes, to learn from.
        theta_test: (E, K) shares, and labels_test (E,) classes, to tell. A class that training lacks is told wrong.
        c: inverse strength of the L2 penalty.

    Returns:
        Measured, with the numbers of documents on both sides; 0 without documents on either.
    """
    train, test = np.asarray(labels_train), np.asarray(labels_test)
    settings = {"classifier": "logistic regression", "c": c, "training_documents": len(train), "documents": len(test)}
    if not len(train) or not len(test):
        return Measured(0.0, **settings)
    told = np.full(len(test), train[0]) if len(np.unique(train)) == 1 else _fitted(theta_train, train, c, theta_test)
    return Measured(float((told == test).mean()), **settings)


def cross_validated_accuracy(
    theta: Array, labels: npt.ArrayLike, n_folds: int = 5, seed: int = 0, c: float = 10.0
) -> Measured:
    """`classification_accuracy` where the same documents teach and are told, in folds that hold all classes evenly.

    Args:
        theta: (D, K) shares.
        labels: (D,) classes; fewer folds are made where the commonest class has not one document for each.
        seed: of the division into folds.
    """
    from sklearn.model_selection import StratifiedKFold

    classes = np.asarray(labels)
    most = int(np.unique(classes, return_counts=True)[1].max(initial=0))
    folds = min(n_folds, most)
    settings = {"classifier": "logistic regression", "c": c, "folds": folds, "seed": seed, "documents": len(classes)}
    if folds < 2:
        return Measured(0.0, **settings)
    right = 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # told wrong, as anywhere
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(theta, classes):
            right += len(test) * classification_accuracy(theta[train], classes[train], theta[test], classes[test], c)
    return Measured(right / len(classes), **settings)


def _fitted(theta: Array, labels: Array, c: float, new: Array) -> Array:
    from sklearn.linear_model import LogisticRegression

    told: Array = LogisticRegression(max_iter=2000, C=c).fit(theta, labels).predict(new)
    return told


def _agreement(score: Any, labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    classes, found = np.asarray(labels), np.asarray(clusters)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # few documents, many classes
        value = float(score(classes, found)) if len(classes) else 0.0
    settings = {"documents": len(classes), "classes": len(np.unique(classes)), "clusters": len(np.unique(found))}
    return Measured(value, **settings)


def _contingency(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Array:
    """(classes, clusters) numbers of documents."""
    classes, of_class = np.unique(np.asarray(labels), return_inverse=True)
    groups, of_group = np.unique(np.asarray(clusters), return_inverse=True)
    table = np.bincount(of_class * len(groups) + of_group, minlength=len(classes) * len(groups))
    return table.reshape(len(classes), len(groups))
