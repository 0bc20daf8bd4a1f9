"""Encoders of texts, which give each text a vector: models, services, and functions and objects of the user's own."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
import numpy.typing as npt

from ..display import progress_bar
from ..errors import InputError, MissingExtraError, SettingError
from ..files import lock_directory
from ..messages import brief, counted
from ..settings import import_named, is_allowed
from .recognition import detect_language
from .services import RequestRefusedError, Service, is_address
from .strings import numeric_array, replace_surrogates
from .vector_cache import Half, VectorCache, keys_of

logger = logging.getLogger("topicloom")

SENTENCE, STATIC = "sentence-transformers", "model2vec"
_FORMS = (
    f"{SENTENCE}:NAME_OR_DIRECTORY, {STATIC}:NAME_OR_DIRECTORY, module:function, https://host/v1#model, auto, or, in "
    "Python, a function from texts to vectors"
)
# What "auto" takes: by extra, for English, for Chinese, and for any other language.
_RECOMMENDED = {
    "sentence_transformers": {
        "en": f"{SENTENCE}:sentence-transformers/all-MiniLM-L6-v2",
        "zh": f"{SENTENCE}:BAAI/bge-small-zh-v1.5",
        "": f"{SENTENCE}:sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    },
    "model2vec": {"en": f"{STATIC}:minishlab/potion-base-8M", "": f"{STATIC}:minishlab/potion-multilingual-128M"},
}

# Vectors of these texts identify an encoder. A change here would make every saved one unknown.
_PROBES = (
    "The ship left the harbour at dawn, and the market opened with higher prices.",
    "股市今天上涨，球队赢得了比赛。",
    "El equipo ganó el partido y los médicos publicaron un nuevo estudio.",
    "computer software music government health",
)
_DIRECTIONS = 8  # on which the vector of each probe is projected
_DIFFERENT = 0.05  # root mean square between the fingerprints of two encoders; unrelated ones differ by about 1.4
_STABLE = 0.999  # the least cosine between two vectors that an encoder gives to one text
_SECONDS_TO_CONNECT = 5.0  # to the host of models
_BATCH = 256  # texts of a call of the user's function
_PROBED = 16  # texts of a call from which on a probe is sent with them
_CHECKED = 8  # cached vectors that are compared with the encoder
_SMALLEST = 2.0**-15  # the largest number of a vector; below, half precision would have fewer than ten bits
_LANGUAGE_SAMPLE = 200

Encode = Callable[[list[str]], Any]


@dataclass(frozen=True)
class _Source:
    """What encodes texts.

    Attributes:
        name: how messages name it.
        encode: a function from texts to vectors.
        pieces: divides a text into parts that it can read; None for one that reads texts of any length.
        reads: how much it reads, for messages.
        batch: the number of texts in a call.
    """

    name: str
    encode: Encode
    pieces: Callable[[str], list[str]] | None = None
    reads: str = ""
    batch: int = _BATCH


class TextEncoder:
    """An encoder of texts, and what identifies it.

    `TextEncoder.of` makes one. A saved corpus or model keeps the name, the size and the fingerprint: two encoders are
    the same if they give the same vectors to fixed texts. The encoder itself is loaded again by its name when it is
    needed. Functions and objects are not saved, and neither are they sent to other processes.

    Attributes:
        name: where the encoder is from, such as "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2".
        size: the length of its vectors.
        fingerprint: 32 numbers: the vectors of four fixed texts, of length 1, projected on eight fixed directions.

    Examples:
        >>> from topicloom.text import TextEncoder
        >>> encoder = TextEncoder.of(lambda texts: [[len(text), text.count(" ") + 1] for text in texts])
        >>> encoder.encode(["two words", ""])
        array([[9., 2.],
               [0., 0.]], dtype=float16)
    """

    def __init__(self, name: str, size: int, fingerprint: Sequence[float]) -> None:
        self.name, self.size, self.fingerprint = name, size, tuple(fingerprint)
        self._source: _Source | None = None
        self._may_load = True
        self._lock = threading.Lock()

    @classmethod
    def of(cls, encoder: Any, language: str | None = None, texts: Sequence[str] = ()) -> TextEncoder:
        """Return an encoder. It encodes a few fixed texts, by which it is recognised later.

        Args:
            encoder: a function from a list of n texts to (n, d) numbers; an object with a method `encode` that does the
                same; or a name: "sentence-transformers:NAME_OR_DIRECTORY", "model2vec:NAME_OR_DIRECTORY",
                "module:function", "https://host/v1#model" (a service with OpenAI's interface) or "auto".
            language: the language of the texts, such as "en"; None recognises it. Only "auto" needs it.
            texts: some of the texts.

        Raises:
            InputError: the encoder cannot be loaded, or it does not return vectors.
            SettingError: it is neither a function nor an object with `encode` nor a name.
            MissingExtraError: the package of the encoder is not installed.
        """
        if isinstance(encoder, TextEncoder):
            return encoder
        if isinstance(encoder, str) and encoder == "auto":
            encoder = recommended(language or detect_language(islice(texts, _LANGUAGE_SAMPLE)))
            logger.info("the encoder is %s", encoder)
        source = _named(encoder) if isinstance(encoder, str) else _given(encoder)
        probes = _called(source, list(_PROBES))
        made = cls(source.name, probes.shape[1], _fingerprint(probes))
        made._source = source
        return made

    @classmethod
    def from_json(cls, about: Any) -> TextEncoder:
        """Return the encoder that `as_json` described. It is loaded when it is needed.

        Raises:
            ValueError: the values are not those of an encoder.
        """
        name, size, fingerprint = (about[key] for key in ("name", "size", "fingerprint"))
        numbers = isinstance(fingerprint, list) and all(isinstance(each, int | float) for each in fingerprint)
        if not isinstance(name, str) or not isinstance(size, int) or size < 1 or not numbers:
            raise ValueError("it does not say which encoder made the vectors")
        made = cls(name, size, [float(each) for each in fingerprint])
        made._may_load = name.startswith((f"{SENTENCE}:", f"{STATIC}:"))
        return made

    def as_json(self) -> dict[str, Any]:
        """Return what identifies the encoder as JSON values."""
        return {"name": self.name, "size": self.size, "fingerprint": list(self.fingerprint)}

    def allowed(self, allow: set[str]) -> TextEncoder:
        """Return the encoder, which may be loaded if its module or its address is allowed.

        A saved model cannot make topicloom run the code of a module, or send texts to a service, without being asked.
        """
        if self._may_load or not (self._place in allow or is_allowed(self._place, allow)):
            return self
        return type(self)(self.name, self.size, self.fingerprint)

    @property
    def _place(self) -> str:
        """The module or the address."""
        return self.name.partition("#" if _is_address(self.name) else ":")[0]

    def is_same(self, other: TextEncoder) -> bool:
        """Return whether two encoders give the same vectors to the same texts, as far as fixed texts can show it."""
        if self.size != other.size or len(self.fingerprint) != len(other.fingerprint):
            return False
        if not any(self.fingerprint) and not any(other.fingerprint):  # neither knows a word of the fixed texts
            return self.name == other.name
        pairs = zip(self.fingerprint, other.fingerprint, strict=True)
        return math.sqrt(sum((a - b) ** 2 for a, b in pairs) / len(self.fingerprint)) <= _DIFFERENT

    def require_same(self, other: TextEncoder, whose: str, here: str = "these") -> None:
        """Raise InputError if vectors were made by another encoder.

        Args:
            other: the encoder of the other vectors.
            whose: whose vectors are those of `other`, such as "the training documents".
            here: whose vectors are those of this encoder.
        """
        if not self.is_same(other):
            raise InputError(
                f"the vectors of {here} are by {self.described}, and those of {whose} by {other.described}; encode "
                "both with the same encoder"
            )

    @property
    def described(self) -> str:
        """The name and the size, for messages."""
        return f"{self.name} ({self.size:,} numbers)"

    def __repr__(self) -> str:
        return f"TextEncoder({self.name!r}, {self.size:,} numbers)"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_source": None}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __copy__(self) -> TextEncoder:
        return self

    def __deepcopy__(self, memo: Any) -> TextEncoder:
        return self  # nothing in it changes, and a model may be large

    # Encoding

    def encode(
        self,
        texts: Sequence[str],
        *,
        prepare: Callable[[str], str] = replace_surrogates,
        cache: str | Path | None = None,
        progress: bool = False,
    ) -> Half:
        """Return the vector of each text, as the encoder gives it, rounded to half precision.

        Equal texts are encoded once. A text without a visible character gets zeros. One that is longer than the encoder
        reads is divided into pieces of about the same length, whose vectors are averaged.

        Args:
            texts: the texts.
            prepare: what is done to each text before.
            cache: a directory that keeps the vectors, so that an interrupted call goes on. Several encoders can share
                it. It may be removed at any time.
            progress: whether to show a progress bar on standard error.

        Returns:
            (n, size) float16.

        Raises:
            InputError: the encoder fails, returns something else than vectors, or gives a text two different vectors;
                or it cannot be loaded, or gives other vectors than before.
        """
        source = self._loaded()
        keys = keys_of(map(prepare, texts))
        vectors = np.zeros((len(texts), self.size), np.float16)

        def read(rows: npt.NDArray[np.intp]) -> list[str]:
            return [replace_surrogates(prepare(texts[row])) for row in rows.tolist()]

        with _opened(cache, self, source, read, keys) as store:
            if store is not None:
                store.read(store.find(keys), into=vectors)
            self._fill(vectors, read, keys, source, store, progress)
        return vectors

    def _fill(
        self,
        vectors: Half,
        read: Callable[[npt.NDArray[np.intp]], list[str]],
        keys: npt.NDArray[np.bytes_],
        source: _Source,
        store: VectorCache | None,
        progress: bool,
    ) -> None:
        """Encode the texts whose vectors are not in the cache. Vectors that are known are already in `vectors`."""
        known = np.zeros(len(keys), np.bool_) if store is None else store.find(keys) >= 0
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        rows = np.sort(first)
        rows = rows[(keys[rows] != b"") & ~known[rows]]
        n_long = 0
        with progress_bar(progress, total=len(rows)) as advance:
            for start in range(0, len(rows), source.batch):
                chosen = rows[start : start + source.batch]
                try:
                    found, n_divided = self._encoded(source, read(chosen), len(rows) > source.batch)
                    made = _halves(source, found)
                except InputError as error:
                    raise InputError(f"{error} ({self._kept(store, start)})") from error.__cause__
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(f"interrupted; {self._kept(store, start)}") from None
                vectors[chosen] = made
                n_long += n_divided
                if store is not None:
                    store.append(keys[chosen], made)
                advance(len(chosen))
        equal = np.flatnonzero(first[group] != np.arange(len(keys))) if len(rows) else rows
        vectors[equal] = vectors[first[group[equal]]]
        if n_long:
            logger.info(
                "%s longer than %s reads (%s); pieces were encoded, and their vectors averaged",
                f"{counted(n_long, 'text')} {'is' if n_long == 1 else 'are'}", self.name, source.reads,
            )  # fmt: skip
        zero = ~vectors[rows].any(axis=1) if len(rows) else np.zeros(0, np.bool_)
        if zero.any():
            logger.info(
                "%s gives zeros, which stand for no vector, to %s that are not empty", self.name,
                counted(int(zero.sum()), "text"),
            )  # fmt: skip

    def _kept(self, store: VectorCache | None, n_done: int) -> str:
        if store is None:
            return "give `encoder_cache` a directory, to keep what was encoded"
        return f"{store.folder.parent} keeps the vectors of {counted(len(store), 'text')}, and the same call goes on"

    def _encoded(self, source: _Source, texts: list[str], has_several: bool) -> tuple[npt.NDArray[np.float32], int]:
        """Return the vectors of a few texts, and how many of these had to be divided."""
        parts = [[text] for text in texts] if source.pieces is None else [source.pieces(text) for text in texts]
        pieces = [piece for part in parts for piece in part]
        made = []
        for start in range(0, len(pieces), source.batch):
            given = pieces[start : start + source.batch]
            probe = [_PROBES[0]] if has_several or len(given) >= _PROBED else []
            found = _called(source, given + probe, self.size)
            if probe:
                self._check_probe(source, found[-1])
                found = found[:-1]
            made.append(found)
        vectors = np.concatenate(made)
        sizes = np.array([len(part) for part in parts])
        if (sizes > 1).any():
            vectors = np.add.reduceat(vectors, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]
        return vectors.astype(np.float32, copy=False), int((sizes > 1).sum())

    def _check_probe(self, source: _Source, vector: npt.NDArray[np.float32]) -> None:
        """Check that the encoder gives a fixed text the same vector in every call."""
        found = np.array(_fingerprint(vector[None]))
        if np.sqrt(((found - self.fingerprint[:_DIRECTIONS]) ** 2).mean()) > _DIFFERENT:
            raise InputError(
                f"{source.name} gave the same text two different vectors in two calls; give an encoder whose vector of "
                "a text depends on this text alone"
            )

    def _loaded(self) -> _Source:
        """Return what encodes texts. It is loaded by its name if this process does not have it."""
        with self._lock:
            if self._source is None:
                self._source = self._load()
            return self._source

    def _load(self) -> _Source:
        known_form = _is_address(self.name) or self.name.startswith((f"{SENTENCE}:", f"{STATIC}:"))
        if not known_form and ":" not in self.name:
            raise InputError(
                f"the vectors were made by {self.name!r}, which is not saved; pass it again: tl.load(dir, "
                "encoder=...), or give documents with vectors"
            )
        if not self._may_load:
            what = "to which texts would be sent" if _is_address(self.name) else "whose code would be run"
            raise InputError(
                f"the vectors were made by {self.name!r}, {what}; give `allow={self._place!r}` if you trust it"
            )
        source = _named(self.name)
        probes = _called(source, list(_PROBES))
        found = TextEncoder(self.name, probes.shape[1], _fingerprint(probes))
        if not found.is_same(self):
            raise InputError(
                f"{self.name} gives other vectors than it gave when the documents were encoded; give the encoder of "
                "then, or encode the training documents again"
            )
        return source


# What encoders return


def _called(source: _Source, texts: list[str], size: int | None = None) -> npt.NDArray[np.float32]:
    """Call an encoder, and return its vectors, (n, size) float32.

    Raises:
        InputError: it fails, or returns something else than a vector of finite numbers for each text.
    """
    try:
        found = source.encode(texts)
    except InputError:
        raise
    except Exception as error:  # the encoder's own code may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"the encoder {source.name} failed: {reason:.300}") from error
    try:
        vectors = numeric_array([*found] if isinstance(found, Iterator) else found)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(
            f"the encoder {source.name} returned {brief(found)}; it should return (n, d) numbers, a row for each text"
        ) from None
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] == 0:
        raise InputError(
            f"the encoder {source.name} returned an array of shape {vectors.shape} for {counted(len(texts), 'text')}; "
            "it should return (n, d) numbers, a row for each text"
        )
    if size is not None and vectors.shape[1] != size:
        raise InputError(
            f"the encoder {source.name} returned {vectors.shape[1]} numbers for a text, and {size} before; it should "
            "always return as many"
        )
    with np.errstate(over="ignore"):
        stored = vectors.astype(np.float32)
    if not np.isfinite(stored).all():
        row = int((~np.isfinite(stored)).any(axis=1).argmax())
        raise InputError(
            f"the encoder {source.name} returned a number that is not finite for the text {brief(texts[row])}; "
            "correct it, or leave the text out"
        )
    return stored


def _halves(source: _Source, vectors: npt.NDArray[np.float32]) -> Half:
    """Round vectors to half precision.

    Raises:
        InputError: a vector is too large or too small for it.
    """
    largest = np.abs(vectors).max(axis=1)
    if ((largest > np.finfo(np.float16).max) | ((largest > 0) & (largest < _SMALLEST))).any():
        raise InputError(
            f"the encoder {source.name} returned vectors with numbers up to {largest.max():g}, which half precision "
            "cannot hold; scale them, for example to length 1"
        )
    return vectors.astype(np.float16)


def _fingerprint(vectors: npt.NDArray[np.float32]) -> list[float]:
    """Return the directions of vectors in a few numbers; zeros for a vector of zeros."""
    directions = np.random.RandomState(0).standard_normal((vectors.shape[1], _DIRECTIONS))  # whose numbers never change
    numbers = vectors.astype(np.float64)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    units = np.divide(numbers, lengths, out=np.zeros_like(numbers), where=lengths > 0)
    return [round(float(each), 4) for each in (units @ directions).ravel()]


@contextmanager
def _opened(
    cache: str | Path | None,
    encoder: TextEncoder,
    source: _Source,
    read: Callable[[npt.NDArray[np.intp]], list[str]],
    keys: npt.NDArray[np.bytes_],
) -> Iterator[VectorCache | None]:
    """Yield the cached vectors of an encoder, without those of another encoder of its name; None without a cache."""
    if cache is None:
        yield None
        return
    if Path(cache).is_file():
        raise InputError(f"`encoder_cache` is {cache}, which is a file; give a directory")
    folder = Path(cache) / hashlib.sha256(encoder.name.encode()).hexdigest()[:16]
    with lock_directory(folder):
        if (about := VectorCache.about(folder)) is not None and not _made_these(encoder, about):
            logger.warning("%s gives other vectors than those in %s, which are made again", encoder.name, folder)
            VectorCache.remove(folder)
        store = VectorCache(folder, encoder.as_json(), encoder.size)
        rows = store.find(keys)
        some = np.flatnonzero(rows >= 0)
        some = some[np.linspace(0, len(some) - 1, min(_CHECKED, len(some))).astype(int)]
        if len(some):  # a function may have changed for these texts alone
            kept = np.zeros((len(some), encoder.size), np.float16)
            store.read(rows[some], into=kept)
            made = encoder._encoded(source, read(some), False)[0]
            if not _are_alike(kept.astype(np.float32), made):
                logger.warning("%s gives other vectors than those in %s, which are made again", encoder.name, folder)
                VectorCache.remove(folder)
                store = VectorCache(folder, encoder.as_json(), encoder.size)
        try:
            yield store
        finally:
            store.close()


def _made_these(encoder: TextEncoder, about: Any) -> bool:
    try:
        return encoder.is_same(TextEncoder.from_json(about))
    except (ValueError, LookupError, TypeError):
        return False


def _are_alike(some: npt.NDArray[np.float32], others: npt.NDArray[np.float32]) -> bool:
    """Return whether vectors have the same directions, and are zero in the same places."""
    lengths = np.linalg.norm(some, axis=1) * np.linalg.norm(others, axis=1)
    both_zero = ~some.any(axis=1) & ~others.any(axis=1)
    return bool((both_zero | ((some * others).sum(axis=1) >= _STABLE * lengths) & (lengths > 0)).all())


# Where encoders come from


def recommended(language: str) -> str:
    """Return the name of the encoder that docs/vectors.md recommends for a language, with the extras at hand.

    Raises:
        MissingExtraError: no extra with encoders is installed.
    """
    for package, names in _RECOMMENDED.items():
        if find_spec(package) is not None:
            return names.get(language, names[""])
    raise MissingExtraError(
        "`encoder='auto'` needs sentence-transformers or model2vec: pip install 'topicloom[sentence]' or "
        "'topicloom[static]'"
    )


def _is_address(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _named(name: str) -> _Source:
    """Return the encoder of a name."""
    if _is_address(name):
        service = _EncodingService(name)
        return _Source(name, service.encode, service.pieces, f"{_BYTES:,} bytes", _SENT)
    kind, _, place = name.partition(":")
    if kind in (SENTENCE, STATIC):
        if not place:
            raise SettingError(f"`encoder={name!r}` names no model; write {kind}:NAME_OR_DIRECTORY")
        if Path(place).is_dir():
            place = str(Path(place).resolve())
        return _sentence_model(place) if kind == SENTENCE else _static_model(place)
    if not all(part.isidentifier() for part in kind.split(".")) or not place:  # such as sentence-transformer:NAME
        raise SettingError(f"`encoder={name!r}` is not the name of an encoder; write {_FORMS}")
    found = import_named(name, "module:function, such as my_encoder:encode")
    if found is None:
        raise InputError(f"the module {kind!r} has no {place!r}; write module:function, such as my_encoder:encode")
    return _given(found, name)


def _given(encoder: Any, name: str | None = None) -> _Source:
    """Return an encoder that is a function, or an object with a method `encode`."""
    kind = type(encoder)
    if name is None:
        own = encoder if hasattr(encoder, "__qualname__") else kind
        name = f"{getattr(own, '__module__', kind.__module__)}.{own.__qualname__}"
    if isinstance(encoder, type):
        try:
            return _given(encoder(), name)
        except InputError:
            raise
        except Exception as error:  # the encoder's own code may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(
                f"the encoder {name} is a class, of which no object can be made: {reason:.300}; give an object with a "
                "method `encode`"
            ) from error
    if kind.__module__.split(".")[0] == "sentence_transformers" and hasattr(encoder, "encode"):
        return _of_sentence_model(encoder, name)
    if kind.__module__.split(".")[0] == "model2vec" and hasattr(encoder, "encode"):
        return _of_static_model(encoder, name)
    if callable(getattr(encoder, "encode", None)) and not isinstance(encoder, str | bytes):
        return _Source(name, encoder.encode)
    if not callable(encoder):
        raise SettingError(f"`encoder` is {brief(encoder)}; give {_FORMS}")
    return _Source(name, encoder)


def _sentence_model(place: str) -> _Source:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError.of("this encoder", "sentence-transformers", "sentence") from None
    is_offline = not Path(place).exists() and _is_offline()
    try:
        model = SentenceTransformer(place, local_files_only=True) if is_offline else SentenceTransformer(place)
    except Exception as error:  # of the network, of files, and of the libraries below
        raise _not_loaded(f"{SENTENCE}:{place}", error) from error
    return _of_sentence_model(model, f"{SENTENCE}:{place}")


def _is_offline() -> bool:
    """Return whether the host of models cannot be reached. sentence-transformers would try again for minutes."""
    from huggingface_hub.constants import ENDPOINT

    address = urlsplit(ENDPOINT)
    if address.hostname is None or getproxies().get(address.scheme):
        return False
    try:
        socket.create_connection((address.hostname, address.port or 443), _SECONDS_TO_CONNECT).close()
    except OSError:
        return True
    return False


def _of_sentence_model(model: Any, name: str) -> _Source:
    limit: Any = getattr(model, "max_seq_length", None)
    tokenizer: Any = getattr(model, "tokenizer", None)
    encode = partial(model.encode, show_progress_bar=False, convert_to_numpy=True)
    if not isinstance(limit, int) or not getattr(tokenizer, "is_fast", False):
        return _Source(name, encode, batch=1024)
    # A tokenizer can divide the end of a piece into more tokens than it had in the text.
    room = max(1, limit - tokenizer.num_special_tokens_to_add() - (2 if limit > 16 else 0))

    def pieces(text: str) -> list[str]:
        if len(text.encode()) <= room:  # a token has a byte or more
            return [text]
        spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
        if len(spans) <= room:
            return [text]
        n = -(-len(spans) // room)
        starts = [0, *(spans[len(spans) * part // n][0] for part in range(1, n)), len(text)]
        return [text[start:end] for start, end in pairwise(starts) if text[start:end].strip()]

    return _Source(name, encode, pieces, counted(limit, "token"), 1024)


def _static_model(place: str) -> _Source:
    try:
        from model2vec import StaticModel
    except ImportError:
        raise MissingExtraError.of("this encoder", "model2vec", "static") from None
    try:
        model = StaticModel.from_pretrained(place)
    except Exception as error:  # of the network, of files, and of the libraries below
        raise _not_loaded(f"{STATIC}:{place}", error) from error
    return _of_static_model(model, f"{STATIC}:{place}")


def _of_static_model(model: Any, name: str) -> _Source:
    # The vector of a text is the mean over its tokens, so a text of any length can be read whole.
    return _Source(name, partial(model.encode, max_length=None, use_multiprocessing=False), batch=1024)


def _not_loaded(name: str, error: Exception) -> InputError:
    reason = " ".join(f"{error}".split()) or type(error).__name__
    return InputError(
        f"the encoder {name} cannot be loaded: {reason:.200}; check the name, the directory or the network"
    )


# A service with OpenAI's interface

_KEY = "TOPICLOOM_ENCODER_KEY"
_SENT = 100  # texts of a request
_BYTES = 8000  # of a text; the models of OpenAI read 8,191 tokens, and a token has a byte or more
_SHORTEST = 64  # characters of a text that is not divided further


class _EncodingService:
    """A service that encodes texts, at an address such as "https://host/v1#model".

    The key is the environment variable TOPICLOOM_ENCODER_KEY or, for api.openai.com, OPENAI_API_KEY. It is sent over
    https, or to this machine.

    Args:
        name: the address, and the model behind #.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        address, _, self.model = name.partition("#")
        if not self.model or not is_address(address):
            raise SettingError(f"`encoder={name!r}` should have an address and a model, such as https://host/v1#model")
        self.service = Service(address, "/embeddings", _KEY, "an encoder")

    def pieces(self, text: str) -> list[str]:
        """Divide a text into parts of up to 8,000 bytes."""
        size = len(text.encode())
        return [text] if size <= _BYTES else _divided(text, -(-size // _BYTES + 1))

    def encode(self, texts: list[str]) -> npt.NDArray[np.float64]:
        """Return the vectors of texts. Those that the service refuses as too long are divided further."""
        try:
            return self._asked(texts)
        except RequestRefusedError:
            if len(texts) > 1:
                middle = len(texts) // 2
                return np.concatenate([self.encode(texts[:middle]), self.encode(texts[middle:])])
            if len(texts[0]) <= _SHORTEST:
                raise
        halves: npt.NDArray[np.float64] = self.encode(_divided(texts[0], 2)).mean(axis=0, keepdims=True)
        return halves

    def _asked(self, texts: list[str]) -> npt.NDArray[np.float64]:
        answer = self.service.answer({"model": self.model, "input": texts, "encoding_format": "float"})
        try:
            found = sorted(json.loads(answer)["data"], key=lambda each: each["index"])
            vectors = np.array([each["embedding"] for each in found], np.float64)
        except (ValueError, LookupError, TypeError):
            raise InputError(
                f"{self.service.address} answers without vectors ({brief(answer[:60])}); check the address of the "
                "encoder"
            ) from None
        if [each["index"] for each in found] != list(range(len(texts))):
            raise InputError(
                f"{self.service.address} answers with {counted(len(found), 'vector')} for "
                f"{counted(len(texts), 'text')}; check the service"
            )
        return vectors


def _divided(text: str, n: int) -> list[str]:
    """Divide a text into n parts of about the same length, at blanks if there are any near."""
    ends = [0]
    for part in range(1, n):
        end = len(text) * part // n
        blank = text.rfind(" ", max(ends[-1], end - 40), end)
        ends.append(max(ends[-1], blank if blank > 0 else end))
    return [
        piece for start, end in zip(ends, [*ends[1:], len(text)], strict=True) if (piece := text[start:end].strip())
    ]
