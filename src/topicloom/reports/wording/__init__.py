"""The words of pictures and reports in English and Chinese.

Each `Phrase` has both languages side by side, so that none can be added in one language alone. The Chinese terms are
those of the explorer's page (explorer/src/i18n.ts) and of the documentation.
"""

from .phrases import FigureLanguage, Language, Phrase, chosen_language, joined

__all__ = ["FigureLanguage", "Language", "Phrase", "chosen_language", "joined"]
