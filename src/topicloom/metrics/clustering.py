"""Agreement of topics with classes that people assigned to the documents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
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

    Raises:
        InputError: there are not as many labels as clusters, or a document has no class (None or NaN) or no cluster.

    Source: Manning, Raghavan & Schütze 2008, section 16.3.

    Examples:
        >>> from topicloom.metrics import purity
        >>> purity(["sport", "sport", "art", "art"], [0, 0, 0, 1])
        0.75
    """
    table = _contingency(labels, clusters)
    n_docs = int(table.sum())
    value = float(table.max(axis=0).sum() / n_docs) if n_docs else 0.0
    return Measured(value, documents=n_docs, classes=table.shape[0], clusters=table.shape[1])


def normalised_mutual_information(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """Mutual information of classes and clusters, divided by the mean of their entropies; from 0 to 1.

    It is 1 if there is a single class and a single cluster.

    Args:
        labels: (D,) the class of each document.
        clusters: (D,) the cluster of each document, such as its main topic, theta.argmax(axis=1).

    Returns:
        Measured, with the numbers of documents, classes and clusters in its settings; 0 if there are no documents.

    Raises:
        InputError: there are not as many labels as clusters, or a document has no class (None or NaN) or no cluster.

    Source: Strehl & Ghosh 2002, with the arithmetic mean. It is scikit-learn's `normalized_mutual_info_score`.

    Examples:
        >>> from topicloom.metrics import normalised_mutual_information
        >>> normalised_mutual_information(["sport", "sport", "art", "art"], [1, 1, 0, 0])
        1.0
    """
    from sklearn.metrics import normalized_mutual_info_score

    return _agreement(normalized_mutual_info_score, labels, clusters)


def adjusted_rand_index(labels: npt.ArrayLike, clusters: npt.ArrayLike) -> Measured:
    """Agreement of classes and clusters about pairs of documents, corrected for chance; at most 1.

    Args:
        labels: (D,) the class of each document.
        clusters: (D,) the cluster of each document, such as its main topic, theta.argmax(axis=1).

    Returns:
        Measured, with the numbers of documents, classes and clusters in its settings; 0 if there are no documents.

    Raises:
        InputError: there are not as many labels as clusters, or a document has no class (None or NaN) or no cluster.

    Source: Hubert & Arabie 1985.

    Examples:
        >>> from topicloom.metrics import adjusted_rand_index
        >>> adjusted_rand_index(["sport", "sport", "art", "art"], [1, 1, 0, 0])
        1.0
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

    Raises:
        InputError: there are not as many labels as rows of theta, a document has no class (None or NaN), or theta is
            not a matrix of finite numbers.

    Examples:
        >>> from topicloom.metrics import classification_accuracy
        >>> theta = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]
        >>> classification_accuracy(theta, ["art", "art", "sport", "sport"], [[0.7, 0.3]], ["art"])
        1.0
    """
    theta_train, theta_test = _shares(theta_train, "theta_train"), _shares(theta_test, "theta_test")
    train = _one_for_each(labels_train, "labels_train", len(theta_train))
    test = _one_for_each(labels_test, "labels_test", len(theta_test))
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
    """Share of documents whose class a logistic regression on theta predicts correctly, by cross-validation.

    The folds have the same proportions of classes.

    Args:
        theta: (D, K) topic shares.
        labels: (D,) classes. If the most common class has fewer documents than there are folds, fewer folds are made.
        n_folds: the number of folds.
        random_state: the seed of the division into folds.
        c: inverse strength of the L2 penalty.

    Returns:
        Measured, with the number of folds in its settings; 0 if no class has two documents.

    Raises:
        InputError: there are not as many labels as rows of theta, a document has no class (None or NaN), or theta is
            not a matrix of finite numbers.

    Examples:
        >>> from topicloom.metrics import cross_validated_accuracy
        >>> theta = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]
        >>> cross_validated_accuracy(theta, ["art", "art", "sport", "sport"], n_folds=2)
        1.0
    """
    from sklearn.model_selection import StratifiedKFold

    theta = _shares(theta, "theta")
    classes = _one_for_each(labels, "labels", len(theta))
    most = int(np.unique(classes, return_counts=True)[1].max(initial=0))
    folds = min(n_folds, most)
    settings: dict[str, Any] = {
        "classifier": "logistic regression",
        "c": c,
        "folds": folds,
        "random_state": random_state,
        "documents": len(classes),
    }
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
    found = _one_for_each(clusters, "clusters")
    classes = _one_for_each(labels, "labels", len(found))
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
    found = _one_for_each(clusters, "clusters")
    classes, of_class = np.unique(_one_for_each(labels, "labels", len(found)), return_inverse=True)
    groups, of_group = np.unique(found, return_inverse=True)
    table = np.bincount(of_class * len(groups) + of_group, minlength=len(classes) * len(groups))
    return table.reshape(len(classes), len(groups))


def _shares(given: npt.ArrayLike, name: str) -> Array:
    """Return topic shares, which may be a data frame, as an array.

    Raises:
        InputError: they are not a matrix of finite numbers.
    """
    theta = np.asarray(given)
    if theta.ndim != 2 or theta.dtype.kind not in "biuf" or not np.isfinite(theta).all():
        raise InputError(f"`{name}` should be a (D, K) matrix of finite numbers, such as model.transform(documents)")
    return theta


def _one_for_each(given: npt.ArrayLike, name: str, n_docs: int | None = None) -> Array:
    """Return what is given for documents as an array, (D,).

    Args:
        given: the labels or the clusters.
        name: the argument that has them.
        n_docs: the number of documents D; None if it is not known otherwise.

    Raises:
        InputError: it has another shape, or a value is missing.
    """
    values = np.asarray(given)
    if values.ndim != 1:
        raise InputError(f"`{name}` should have one value for each document; its shape is {values.shape}")
    if n_docs not in (None, len(values)):
        raise InputError(f"`{name}` should have a value for each document, {n_docs} in all; it has {len(values)}")
    objects = np.asarray(given, object)  # as an array of strings, NaN would be the class "nan"
    missing = next((row for row, value in enumerate(objects.tolist()) if value is None or value != value), None)
    if missing is not None:
        raise InputError(f"`{name}` has no value for document {missing}; leave out the documents that have none")
    return values
