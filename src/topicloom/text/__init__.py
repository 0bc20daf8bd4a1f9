"""Raw text to tokens: readers, tokenizers by language, stop words. Needs no PyTorch, so that workers start fast."""

from .languages import detect_language, languages
from .readers import Document, read
from .stopwords import stop_words
from .tokenizers import (
    AnyTokenizer,
    CustomTokenizer,
    Pretokenized,
    Tokenizer,
    make_tokenizer,
    tokenizer_from_settings,
)

__all__ = [
    "AnyTokenizer",
    "CustomTokenizer",
    "Document",
    "Pretokenized",
    "Tokenizer",
    "detect_language",
    "languages",
    "make_tokenizer",
    "read",
    "stop_words",
    "tokenizer_from_settings",
]
