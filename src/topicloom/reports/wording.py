"""The words of pictures and reports in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..errors import SettingError
from ..metrics import CATALOGUE, Measure

# Phrases, and the choice of the language.

Language = Literal["en", "zh"]
FigureLanguage = Literal["auto", "en", "zh"]


@dataclass(frozen=True)
class Phrase:
    """A phrase in both languages. What is in braces are values that a call fills in, as `str.format` does."""

    en: str
    zh: str

    def __call__(self, language: Language, **values: object) -> str:
        return (self.zh if language == "zh" else self.en).format(**values)


def chosen_language(language: FigureLanguage, tokenizer: object = None, argument: str = "language") -> Language:
    """Return the language that is meant: for "auto", Chinese if the texts are Chinese, and otherwise English.

    Args:
        language: "auto", "en" or "zh".
        tokenizer: the tokenizer of the texts; None if they are not known.
        argument: the argument that gives the language, for the message.

    Raises:
        SettingError: it is none of them.
    """
    if language not in get_args(FigureLanguage):
        raise SettingError(f"`{argument}={language!r}` should be en or zh, or auto for that of the texts")
    if language == "auto":
        return "zh" if getattr(tokenizer, "language", None) == "zh" else "en"
    return language


def joined(sentences: Iterable[str], language: Language) -> str:
    """Join sentences, with a blank between English ones. Empty ones are left out."""
    return ("" if language == "zh" else " ").join(filter(None, sentences))


# Stages of training.


def changes_of_stage(history: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, int]]:
    """Return each change of stage: the names of both stages, and the number of the row with which the second begins.

    Rows name their stage as "stage". In rows without it, the counting stage starts at the first "concentration" or
    "encoder_divergence". The latter is not measured in every epoch, and its first may be later than the stage's.
    """
    starts = [number for number, row in enumerate(history) if row.keys() & {"concentration", "encoder_divergence"}]
    counting = starts[0] if starts else len(history)
    names = [row.get("stage") or ("pretraining", "counting")[number >= counting] for number, row in enumerate(history)]
    numbers = [number for number in range(1, len(names)) if names[number - 1] != names[number]]
    return [(names[number - 1], names[number], number) for number in numbers]


_STAGES = {
    "pretraining": Phrase("pretraining", "预训练"),
    "counting": Phrase("counting", "计数"),
    "sampling": Phrase("sampling", "采样"),
    "training": Phrase("training", "训练"),
}


def stage_name(name: str, language: Language) -> str:
    """Return the name of a stage of training. Those of a user's own model have no Chinese name."""
    return _STAGES[name](language) if name in _STAGES else name


# Terms of the loss.

_EXPLAINED = Phrase("{name}: {meaning}", "{name}：{meaning}")
_TERM_NAMES = {
    "loss": Phrase("loss", "损失"),
    "reconstruction": Phrase("reconstruction", "重构误差"),
    "validation_loss": Phrase("validation loss", "留出文档的损失"),
    "divergence": Phrase("divergence", "与先验的散度"),
    "separation": Phrase("separation", "分离项"),
    "shares_prior": Phrase("shares prior", "占比的先验"),
    "encoder_divergence": Phrase("encoder divergence", "编码器的散度"),
    "component_separation": Phrase("component separation", "分量分离项"),
    "balance": Phrase("balance", "均衡项"),
    "critic_loss": Phrase("critic loss", "判别器的损失"),
}
_TERMS = {  # of the losses; terms of a user's own model have no explanation
    "loss": Phrase("what training minimises, all terms together", "训练要降到最低的量，即各项之和"),
    "reconstruction": Phrase(
        "how surprising the words of a document are, given its topics", "已知文档的主题时，其中的词有多出乎意料"
    ),
    "validation_loss": Phrase("the loss of documents that the model does not learn from", "不用于训练的文档的损失"),
    "divergence": Phrase(
        "how far the topics of documents are from the prior, the model's guess before it reads them",
        "文档的主题与先验相差多远；先验是模型读到文档之前的猜测",
    ),
    "separation": Phrase(
        "a reward for topics with different words; its weight changes from epoch to epoch",
        "鼓励各主题使用不同的词；它的权重随轮次变化",
    ),
    "shares_prior": Phrase("a prior that prefers topics of equal shares", "偏向各主题占比均等的先验"),
    "encoder_divergence": Phrase(
        "how far the network's guess of a document's topics is from the topics found by counting",
        "网络推断的文档主题与计数得到的主题相差多远",
    ),
    "component_separation": Phrase(
        "keeps each component of the mixture at its own topic", "使混合分布的每个分量对应各自的主题"
    ),
    "balance": Phrase("keeps all components of the mixture in use", "使混合分布的所有分量都得到使用"),
    "critic_loss": Phrase(
        "how badly the critic distinguishes real documents from generated ones; lower: a better critic",
        "判别器区分真实文档与生成文档的误差；越低，判别器越好",
    ),
}


def term_name(name: str, language: Language) -> str:
    """Return the name of a column of the history. The terms of a user's own model have no Chinese name."""
    if name in _TERM_NAMES:
        return _TERM_NAMES[name](language)
    return CATALOGUE[name].title_zh if language == "zh" and name in CATALOGUE else name.replace("_", " ")


def term_explained(name: str, language: Language) -> str:
    """Return the name of a term of the loss with its explanation, if it has one."""
    shown = term_name(name, language)
    return _EXPLAINED(language, name=shown, meaning=_TERMS[name](language)) if name in _TERMS else shown


# Measures.

# The axes of pictures by measure. Measures of the same scale share an axis; one without an entry has its title.
_NPMI, _DIVERSITY = Phrase("coherence, NPMI", "一致性，NPMI"), Phrase("diversity", "多样性")
_AXES = {
    "document_npmi": _NPMI,
    "c_npmi": _NPMI,
    "c_v": Phrase("coherence, C_v", "一致性，C_v"),
    "c_uci": Phrase("coherence, UCI", "一致性，UCI"),
    "u_mass": Phrase("coherence, UMass", "一致性，UMass"),
    "topic_diversity": _DIVERSITY,
    "topic_uniqueness": _DIVERSITY,
    "inverted_rbo": _DIVERSITY,
    "redundancy": Phrase("share of pairs of topics that are duplicates", "重复的主题对所占的比例"),
}

# What stands above the panel of a measure, for people who do not know it. One without an entry has its title.
_MEANINGS = {
    "kl_per_dimension": Phrase(
        "how much the latent dimensions say about a document: the median (line), and the range from the lowest to the "
        "highest (band); a logarithmic axis",
        "隐变量各维含有多少文档的信息：中位数（线），以及从最低到最高的范围（色带）；纵轴是对数刻度",
    ),
    "active_units_by_divergence": Phrase(
        "latent dimensions that say something about the documents", "含有文档信息的隐变量维数"
    ),
    "active_topics": Phrase(
        "topics that are the main topic of at least one document", "至少是一篇文档的主要主题的主题数"
    ),
    "lowest_topic_diversity": Phrase(
        "share of different words among the topics' 25 top words (the lower of two rankings)",
        "所有主题的前 25 个词中，不同的词所占的比例（两种排序中较低的一个）",
    ),
    "duplicate_topics": Phrase(
        "pairs of topics that share at least 8 of their 10 top words", "前 10 个词中至少有 8 个相同的主题对数"
    ),
    "frequent_mass": Phrase(
        "share of the topics' weight that is on the corpus's 50 most frequent words",
        "各主题的权重中，语料中最常见的 50 个词所占的比例",
    ),
}


def title_of(measure: Measure, language: Language) -> str:
    """Return the title of a measure of the catalogue."""
    return measure.title_zh if language == "zh" else measure.title


def axis_of(measure: Measure, language: Language) -> str:
    """Return the label of the axis that measures of the same scale share; the title if a measure has its own."""
    return _AXES[measure.name](language) if measure.name in _AXES else title_of(measure, language)


def meaning_of(measure: Measure, language: Language) -> str:
    """Return the explanation of a measure; its title if it has none."""
    return _MEANINGS[measure.name](language) if measure.name in _MEANINGS else title_of(measure, language)
