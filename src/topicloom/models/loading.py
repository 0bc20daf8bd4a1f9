"""Reading saved models. Saved files are safetensors, JSON and text: none is executed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..embeddings.expansion import DocumentExpansion
from ..errors import InputError, ModelFileError
from ..files import as_path, read_whole
from ..nn.execution import usual_device
from ..settings import is_allowed
from ..text import CustomTokenizer
from ..text.tokenizing import with_allowed
from ..topics.saved import (
    COMPONENTS,
    CONFIG,
    MODEL_FORMAT,
    NEIGHBOURS,
    WEIGHTS,
    find_model,
    read_config,
    read_vocabulary,
)
from ..training.batches import choose_device
from . import imported_model, model_class
from .base import WORDS_ALONE, TopicModel
from .editing import restored_edits, trained_part
from .saving import COUNTS

logger = logging.getLogger("topicloom")


@usual_device()
def load(
    directory: str | Path,
    *,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
    encoder: Any = None,
    device: str = "auto",
    allow: Iterable[str] = (),
) -> TopicModel:
    """Read a saved model. It is ready for `transform` on raw text.

    Args:
        directory: a directory that `model.save` wrote, or a run directory of the command line.
        tokenizer: your own tokenizer, if the model was trained with one.
        encoder: your own encoder, if the model reads vectors and was trained with one.
        device: the device on which the model runs. It may differ from the device of the training.
        allow: the modules that may be imported for a model class, a tokenizer or an encoder of your own, such as
            ["my_model"], and the addresses to which texts may be sent for their vectors. No other module is imported,
            because importing a module runs its code.

    Raises:
        ModelFileError: there is no model, or one of its files is missing, damaged, of a newer format, or a link to a
            file elsewhere; the message names the file.
        InputError: the model is of a module that is not allowed, the encoder is not that of the training, or there is
            no such device.

    Examples:
        >>> import tempfile
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=40, n_words=30, n_topics=2).corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tl.LDA(n_topics=2, epochs=1, random_state=0).fit(corpus).save(folder, overwrite=True)
        ...     tl.load(folder)
        LDA(epochs=1, n_topics=2, random_state=0)
    """
    choose_device(device)
    place = as_path(directory, "directory")
    allowed = {allow} if isinstance(allow, str) else set(allow)
    model = read_whole([place / CONFIG, place / "model" / CONFIG], lambda: _load(place, tokenizer, device, allowed))
    if encoder is not None:
        model.origin.encoder_ = model.encoder_ = model.accepted_encoder(encoder)
        if "vectors" not in model.origin.fields_:
            logger.warning("%s", WORDS_ALONE)
    return model


def _load(place: Path, tokenizer: Callable[[str], Iterable[str]] | None, device: str, allowed: set[str]) -> TopicModel:
    folder = find_model(place)
    config = read_config(folder)
    kind = _saved_class(folder, config, allowed)
    written = config[MODEL_FORMAT]
    if written > kind.model_format:
        raise ModelFileError.newer(folder / CONFIG)
    if written < kind.model_format:
        problem = f"{kind.__name__} had format {written}, and has format {kind.model_format} now"
        raise ModelFileError.other_form(folder / CONFIG, problem)
    tensors = _tensors(folder / WEIGHTS)
    words = read_vocabulary(folder)
    config["settings"]["device"] = device
    try:
        if "edited" in config:
            model: TopicModel = _edited_model(kind, config, words, tensors)
        else:
            model = kind.from_saved(config, words, tensors)
        if NEIGHBOURS in config["sha256"]:
            parts = {name: tensor.numpy() for name, tensor in _tensors(folder / NEIGHBOURS).items()}
            settings = model.origin.neighbours, model.origin.neighbour_tokens
            model.origin.expansion_ = DocumentExpansion.of_arrays(parts, len(words), *settings)
    except InputError as error:
        raise ModelFileError(f"{folder / CONFIG} cannot be used: {error}") from error
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        if WEIGHTS in config["sha256"]:  # the checksums are right
            raise ModelFileError.other_form(folder, _reason(error)) from error
        raise _damaged(folder, error) from error
    if tokenizer is not None:
        model.tokenizer_ = CustomTokenizer.of(tokenizer, getattr(model.tokenizer_, "stop_words", ()))
    else:
        model.tokenizer_ = with_allowed(model.tokenizer_, allowed)
    if model.encoder_ is not None:
        model.encoder_ = model.encoder_.allowed(allowed)
    return model


def _tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file, which stay on disk until they are read."""
    try:
        return load_file(path)
    except OSError as error:
        raise ModelFileError.unreadable(path, error) from None
    except SafetensorError as error:
        raise _damaged(path, error) from error


def _edited_model(
    kind: type[TopicModel], config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]
) -> TopicModel:
    """Return a saved model with edits. The trained model is read first."""
    learned = {name: tensors[name] for name in COUNTS}
    placeholder = torch.zeros(1).expand(int(config["settings"]["n_topics"]), len(vocabulary))
    trained = kind.from_saved(config, vocabulary, trained_part(tensors) | learned | {COMPONENTS: placeholder})
    return trained.with_edits(*restored_edits(trained.network_, config, tensors))


def _saved_class(folder: Path, config: dict[str, Any], allowed: set[str]) -> type[TopicModel]:
    """Return the class of a saved model. A module of the user's is imported only if that is allowed."""
    name, module = config["model"], config["module"]
    if module.split(".")[0] in ("", "topicloom"):
        try:
            return model_class(name)
        except InputError as error:
            raise ModelFileError(f"{folder / CONFIG} cannot be used: {error}") from None
    if not is_allowed(module, allowed):
        raise InputError(
            f"{folder} holds a model of the class {name} in the module {module!r}, whose code would be run; "
            f"give `allow={module!r}` if you trust it"
        )
    return imported_model(f"{module}:{name}")


def _damaged(path: Path, error: Exception) -> ModelFileError:
    return ModelFileError.of(path, f"is damaged: {_reason(error)}")


def _reason(error: Exception) -> str:
    reason = f"there is no {error}" if isinstance(error, KeyError) else (str(error) or type(error).__name__)
    return reason.splitlines()[0]
