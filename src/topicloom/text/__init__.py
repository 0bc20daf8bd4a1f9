"""Raw text to tokens: readers, tokenizers by language and stop words.

Nothing here imports PyTorch, so that worker processes start fast.
"""

from .languages import languages, stop_words
from .reading import read
from .recognition import detect_language
from .records import Document
from .text_encoders import TextEncoder
from .tokenizing import AnyTokenizer, CustomTokenizer, Pretokenized, Tokenizer, make_tokenizer, tokenizer_from_settings

__all__ = [
    "AnyTokenizer",
    "CustomTokenizer",
    "Document",
    "Pretokenized",
    "TextEncoder",
    "Tokenizer",
    "detect_language",
    "languages",
    "make_tokenizer",
    "read",
    "stop_words",
    "tokenizer_from_settings",
]
