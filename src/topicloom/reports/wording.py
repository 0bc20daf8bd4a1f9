"""The words of pictures and reports in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ..metrics import CATALOGUE, Measure

# Phrases.

Language = Literal["en", "zh"]
FigureLanguage = Literal["auto", "en", "zh"]


@dataclass(frozen=True)
class Phrase:
    """A phrase in both languages. What is in braces are values that a call fills in, as `str.format` does."""

    en: str
    zh: str

    def __call__(self, language: Language, **values: object) -> str:
        return (self.zh if language == "zh" else self.en).format(**values)


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
    "unweighted": Phrase("reconstruction + divergence", "重构误差 + 散度"),
    "validation_loss": Phrase("validation loss", "留出文档的损失"),
    "divergence": Phrase("divergence", "与先验的散度"),
    "separation": Phrase("separation", "分离项"),
    "shares_prior": Phrase("shares prior", "占比的先验"),
    "encoder_divergence": Phrase("encoder divergence", "编码器的散度"),
    "component_separation": Phrase("component separation", "分量分离项"),
    "balance": Phrase("balance", "均衡项"),
    "critic_loss": Phrase("critic loss", "判别器的损失"),
    "clustering": Phrase("clustering", "聚类项"),
    "document_cost": Phrase("cost of documents", "文档的传输代价"),
    "word_cost": Phrase("cost of words", "词的传输代价"),
}
_TERM_MEANINGS = {  # The terms of a user's own model have none.
    "loss": Phrase("what training minimises, all terms together", "训练要降到最低的量，即各项之和"),
    "unweighted": Phrase(
        "both with their full weight, whatever their weights in training are, so that epochs can be compared",
        "两者都取全部权重，与训练中的权重无关，因此各轮次可以比较",
    ),
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
    "clustering": Phrase("gathers the vectors of words around those of topics", "使词向量聚集在主题向量周围"),
    "document_cost": Phrase(
        "how far the vectors of documents are from those of their topics", "文档的向量与其主题的向量相距多远"
    ),
    "word_cost": Phrase(
        "how far the vectors of topics are from those of their words", "主题的向量与其中词的向量相距多远"
    ),
}


def term_name(name: str, language: Language) -> str:
    """Return the name of a column of the history. The terms of a user's own model have no Chinese name."""
    if name in _TERM_NAMES:
        return _TERM_NAMES[name](language)
    return title_of(CATALOGUE[name], language) if name in CATALOGUE else name.replace("_", " ")


def term_explained(name: str, language: Language) -> str:
    """Return the name of a term of the loss with its explanation, if it has one."""
    shown = term_name(name, language)
    return _EXPLAINED(language, name=shown, meaning=_TERM_MEANINGS[name](language)) if name in _TERM_MEANINGS else shown


# Measures.

# The axes of pictures by measure. Measures of the same scale share an axis; one without an entry has its title.
_NPMI, _DIVERSITY = Phrase("coherence, NPMI", "一致性，NPMI"), Phrase("diversity", "多样性")
_AXES = {
    "document_npmi": _NPMI,
    "pooled_npmi": Phrase("coherence, NPMI of pooled documents", "一致性，合并文档的 NPMI"),
    "c_npmi": _NPMI,
    "c_v": Phrase("coherence, C_v", "一致性，C_v"),
    "c_uci": Phrase("coherence, UCI", "一致性，UCI"),
    "u_mass": Phrase("coherence, UMass", "一致性，UMass"),
    "c_w2v": Phrase("coherence, C_w2v", "一致性，C_w2v"),
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
    "largest_share": Phrase(
        "share of the largest topic: its mean share of the documents", "最大的主题的占比：它在各文档中所占比例的平均值"
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


# Titles, labels of axes, legends and notes of pictures.

TOPIC = Phrase("topic {topic}", "主题 {topic}")
NUMBER_OF_TOPICS = Phrase("topics", "主题数")
N_TOPICS = Phrase("{n} topics", "{n} 个主题")
OTHER_TOPICS = Phrase("other topics", "其他主题")
DOCUMENT = Phrase("document {id}", "文档 {id}")
DOCUMENTS = Phrase("documents", "文档")
SHARE = Phrase("share", "占比")
SIMILARITY = Phrase("similarity", "相似度")

# Pages of topics: bars and clouds.
BARS = Phrase(
    "Bars show relevance, which also orders the words: the geometric mean of a word's probability in the topic and its "
    "lift (that probability / its share of the corpus).",
    "条形的长度表示相关度，词也按相关度排序：它是词在主题中的概率与提升度（该概率 / 词在语料中所占的比例）的几何平均。",
)
CLOUDS = Phrase(
    "The larger and darker a word, the better it stands for its topic. Its place has no meaning.",
    "词越大、颜色越深，越能代表主题。词的位置没有意义。",
)
SHARES = Phrase("Percentages: mean share of the documents.", "百分数是主题在各文档中的平均占比。")
PAGE = Phrase("Page {number} of {n_pages}.", "第 {number} 页，共 {n_pages} 页。")

# Curves of training.
EPOCH = Phrase("epoch", "轮次")
PER_DOCUMENT = Phrase("per document", "每篇文档")
LOSS = Phrase(
    "If the loss still falls at the end, more epochs may help. Its size depends on the length of the texts, and says "
    "nothing by itself.",
    "如果损失到最后仍在下降，增加轮次可能有帮助。损失的大小取决于文本的长度，数值本身不说明好坏。",
)
CHANGING_LOSS = Phrase(
    "The weights in the loss change during training, so it may rise although the model improves; compare epochs by the "
    "first panel.",
    "损失中的权重在训练中会变，因此模型在改进时损失也可能上升；请看第一个图框来比较各轮次。",
)
EVENTS = Phrase(
    "Dotted lines are events: the removal of spare topics, and the end of the rise of the divergence's weight.",
    "点线是训练中的事件：移除备用主题，散度的权重升到最高。",
)
WEIGHTED_LOSS = Phrase(
    "The loss has the divergence with a weight of {weight}. The first panel has its full weight, so that it can be "
    "compared with fits of other weights.",
    "损失中散度的权重是 {weight}；第一个图框中散度按全权重计算，可以与权重不同的训练比较。",
)
TOPICS_LEFT = Phrase("{n} topics left", "剩 {n} 个主题")
FULL_WEIGHT = Phrase("full weight", "权重最高")
MISLEADING = {
    "c_v": Phrase(
        "C_v is also high for rare words that never occur together, because they are alike in that. It can therefore "
        "fall while topics improve; read NPMI beside it.",
        "对于从不一起出现的罕见词，C_v 也会很高，因为它们在这一点上相似。"
        "因此主题变好时 C_v 也可能下降，请与 NPMI 一起看。",
    ),
    "c_w2v": Phrase(
        "C_w2v compares word vectors that were trained on these texts. If the texts are few, the vectors of all words "
        "are alike, and C_w2v is high for any words.",
        "C_w2v 比较的是用这些文本训练的词向量。文本少时，所有词的向量都相似，任何词的 C_w2v 都高。",
    ),
}
COLLAPSE = Phrase(
    "Collapse means that all documents get the same topics, or that topics have the same words. A good training ends "
    "with all requested topics in use, few duplicates, and a high diversity.",
    "坍缩是指所有文档得到同样的主题，或者各主题的词相同。好的训练结束时，要求的主题都有文档，重复的主题很少，多样性高。",
)
SCALE = Phrase(
    "These values depend on the texts: compare them with other models of the same texts, not of other ones.",
    "这些值与文本有关：只能与同样文本上的其他模型比较，不能与其他文本上的模型比较。",
)
COUNTING = Phrase(
    "Before the dashed line, a neural network learns the topics (pretraining). After it, topics are estimated from the "
    "words that are assigned to them (counting). The loss before the line and the loss after it cannot be compared. "
    "After the line it is measured on few documents, not in every epoch, and therefore jumps.",
    "虚线之前，由神经网络学习主题（预训练）；虚线之后，由分配给各主题的词估计主题（计数）。虚线前后的损失不能相互比较。"
    "虚线之后，损失只在少数文档上测量，也不是每个轮次都测量，因此会跳动。",
)
SPARE_TOPICS = Phrase(
    "Training starts with spare topics ({at_first} for the {n_topics} requested), and removes those that are not "
    "needed while it goes on.",
    "训练开始时有备用主题（要求 {n_topics} 个，开始时共 {at_first} 个），训练中逐步移除不需要的主题。",
)
REQUESTED = Phrase("{n} requested", "要求 {n} 个")
AT_THE_END = Phrase("{n} at the end", "结束时 {n} 维")
INACTIVE = Phrase("inactive below", "低于此线为不活跃")
LOWER_IS_BETTER = Phrase("{label}; lower is better", "{label}；越低越好")
STAGE_AFTER = Phrase("{after}, after {before}", "{after}（此前为{before}）")
QUALITY = {
    "coherence": Phrase(
        "coherence: whether the top words of a topic occur in the same documents or passages; higher is better",
        "一致性：主题的代表词是否出现在相同的文档或片段中；越高越好",
    ),
    "c_w2v": Phrase(
        "coherence: whether the top words of a topic have similar word vectors; higher is better",
        "一致性：主题的代表词的词向量是否相近；越高越好",
    ),
    "diversity": Phrase(
        "diversity: whether topics have different top words; higher is better",
        "多样性：各主题的代表词是否不同；越高越好",
    ),
}

# Maps.
MAP = Phrase(
    "Each dot is a document, coloured by its {colour}. Documents with similar {near} are near each other ({method}).",
    "每个点是一篇文档，颜色表示它的{colour}。{near}相近的文档彼此靠近（{method}）。",
)
COLOURS = {"topic": Phrase("main topic", "主要主题"), "label": Phrase("label", "类别")}
SPACES = {
    "theta": Phrase("topic shares", "主题占比"),
    "vectors": Phrase("vectors of their texts", "文本向量"),
    "latent": Phrase("positions in the latent space", "在隐空间中的位置"),
}
METHODS = {
    "tsne": Phrase(
        "t-SNE, which keeps near neighbours; distances between far groups mean little",
        "t-SNE 保持近邻关系；相距很远的两群之间的距离没有多少意义",
    ),
    "umap": Phrase(
        "UMAP, which keeps near neighbours; distances between far groups mean little",
        "UMAP 保持近邻关系；相距很远的两群之间的距离没有多少意义",
    ),
    "pca": Phrase(
        "a principal component analysis, which shows the two directions in which they differ most",
        "主成分分析显示差异最大的两个方向",
    ),
}
WITHOUT_LABEL = Phrase(
    "Documents without a label are grey ({n:,} of {n_all:,}).", "没有类别的文档是灰色的（{n_all:,} 篇中有 {n:,} 篇）。"
)
DENSITY = Phrase(
    "Clouds show where documents with the same {colour} are dense.", "色块表示{colour}相同的文档密集之处。"
)
REPEATED_COLOURS = Phrase("There are only {n} colours, so that colours repeat.", "颜色只有 {n} 种，因此有重复。")
SAMPLED = Phrase("{n:,} of {n_all:,} documents, drawn at random.", "从 {n_all:,} 篇文档中随机抽取 {n:,} 篇。")
ONE_LEFT_OUT = Phrase("1 document without a known word is left out.", "有 1 篇文档不含已知的词，没有画出。")
SOME_LEFT_OUT = Phrase("{n:,} documents without a known word are left out.", "有 {n:,} 篇文档不含已知的词，没有画出。")
WITHOUT_VECTOR = Phrase("Documents without a vector are left out ({n:,}).", "没有向量的文档没有画出（{n:,} 篇）。")
WORD_MAP = Phrase(
    "Stars are topics and dots are words of the space in which the model learned both; those with similar directions "
    "are near each other ({method}). A word has the colour of the topic in which it ranks highest. Words without room "
    "have no label.",
    "星形是主题，圆点是词，模型在同一个空间中学习两者；方向相近的彼此靠近（{method}）。词的颜色是它排名最高的那个主题的颜色。"
    "没有空位的词不写标签。",
)

# Two documents, similarity, time, and the numbers of topics.
INTERPOLATION = Phrase(
    "The columns A and B show the two documents. The columns between them belong to points at equal distances on the "
    "straight line from A to B in the latent space of the model. Each column shows the topics and the words that the "
    "model expects in a document at that point. A word has the colour of the topic that makes it most probable.",
    "A 列和 B 列是两篇文档，中间各列是模型的隐空间中从 A 到 B 的直线上间隔相等的点。每一列显示模型认为该处的文档会有的"
    "主题和词。词的颜色是使它概率最大的那个主题的颜色。",
)
RETURNING = Phrase(
    "Rows: the topics of the model, those that return most often on top, with the share of fits in which they return. "
    "Columns: further fits with another seed, another order of the documents, or a bootstrap sample. The colour is the "
    "similarity to the partner in that fit, matched one to one. A dot marks similarities below {threshold:g}, with "
    "which a topic does not return.",
    "行：模型的主题，重现最多的在最上面，并标出重现的训练所占比例。列：换随机种子、换文档顺序或用自助抽样的再次训练。"
    "颜色表示与该次训练中一一配对的主题的相似度。圆点表示相似度低于 {threshold:g}，即主题没有重现。",
)
VARIED = {
    "seed": Phrase("seed", "随机种子"), "order": Phrase("order", "文档顺序"),
    "bootstrap": Phrase("bootstrap", "自助抽样"),
}  # fmt: skip
SIMILARITY_NOTE = Phrase(
    "1 minus the distance of two topics: half of it is that of their words, and half that of the documents that "
    "contain them. The tree joins the most similar topics first.",
    "相似度等于 1 减去两个主题的距离：距离的一半来自两个主题的词，另一半来自含有它们的文档。树最先合并最相似的主题。",
)
OVER_TIME = Phrase("Share of each topic in the documents of each {period}.", "每个主题在各{period}文档中的占比。")
PERIODS = {
    "hour": Phrase("hour", "小时"), "day": Phrase("day", "日"), "week": Phrase("week", "周"),
    "month": Phrase("month", "月"), "quarter": Phrase("quarter", "季度"), "year": Phrase("year", "年"),
    "decade": Phrase("decade", "十年"), "bins": Phrase("bin", "区间"),
}  # fmt: skip
SEVERAL_PERIODS = {
    "hour": Phrase("{n} hours", "{n} 小时"), "day": Phrase("{n} days", "{n} 日"), "week": Phrase("{n} weeks", "{n} 周"),
    "month": Phrase("{n} months", "{n} 个月"), "quarter": Phrase("{n} quarters", "{n} 个季度"),
    "year": Phrase("{n} years", "{n} 年"), "decade": Phrase("{n} decades", "{n} 个十年"),
}  # fmt: skip
SPARSE = Phrase(
    "Hollow points have fewer than {n} documents; they are not joined, and may lie outside of the panel.",
    "空心点的文档少于 {n} 篇，不参与连线，也可能超出图框。",
)
BURSTS = Phrase("Orange periods: a burst of the topic.", "橙色时段：主题的突发。")
BAND = Phrase("The band is a 95 % interval.", "色带为 95% 区间。")
CLASS = Phrase("class", "类别")
BY_GROUP = Phrase(
    "Share of each topic by {by}. Blue: more than in all documents; orange: less. Bold: the difference is significant "
    "(Benjamini-Hochberg, 5 %).",
    "每个主题的占比，按 {by} 分组。蓝色：高于全部文档；橙色：低于全部文档。粗体：差异显著（错误发现率 5%）。",
)
ALONG = Phrase("Expected share of each topic by {by}.", "每个主题的期望占比，横轴为 {by}。")
PANELS_DIFFER = Phrase("The panels differ in scale.", "各格的纵轴刻度不同。")
OTHERS_LEFT_OUT = Phrase(
    "Other topics are left out ({n}; {part:.0%} of the documents).", "其余 {n} 个主题占文档的 {part:.0%}，没有画出。"
)

# The shares of documents, and draws of a prior.
SPARSITY = Phrase(
    "Each document has a share of every topic. Left: its largest share, its second largest, and so on; the line is the "
    "median document, and the band holds 80 % of the documents. Middle: how many topics of a document have at least "
    "such a share. Right: the number of topics that, with equal shares, would be as mixed as the document: the "
    "exponential of the entropy of its shares, 1 if it has a single topic.",
    "每篇文档在每个主题上都有占比。左图是文档的最大占比、第二大占比，依此类推；线是中位数，色带包含 80% 的文档。"
    "中图是一篇文档中占比不低于某个值的主题数。右图是文档的有效主题数，即占比的熵的指数：有多少个占比相等的主题，混合程度与这篇"
    "文档相同；只有一个主题时为 1。",
)
RANKED = Phrase("shares of a document, largest first", "一篇文档的占比，从大到小")
RANK = Phrase("rank of the topic in the document", "主题在文档中的名次")
AT_LEAST = Phrase("number of topics of at least ...", "占比不低于下列值的主题数")
MIXTURE = Phrase("mixture: number of equal topics", "有效主题数")
TOPICS_AT_MOST = Phrase("topics (at most {n})", "主题数（最多 {n}）")
MEDIAN = Phrase("median {median:.1f}", "中位数 {median:.1f}")
SIMPLEX = Phrase(
    "Each dot is a document that is drawn from a Dirichlet prior with the parameter alpha, and its place is its share "
    "of three topics: a corner is a document with one topic, the middle an even mixture of all three. Below 1, most "
    "documents have few topics; at 1, all mixtures are equally likely; above 1, documents resemble the average. "
    "Different parameters for the topics make some of them more frequent.",
    "每个点是从参数为 alpha 的狄利克雷先验中抽取的一篇文档，位置表示它在三个主题上的占比：角上的文档只有一个主题，正中"
    "的文档三个主题占比相等。alpha 小于 1 时，大多数文档只有少数主题；等于 1 时，各种占比的可能性相同；大于 1 时，各"
    "文档接近平均。如果各主题的参数不同，有些主题会更常见。",
)


@cache
def characters(language: Language) -> frozenset[str]:
    """Return the characters other than ASCII of all words that pictures may have; there are none in English."""
    if language == "en":
        return frozenset()
    texts = _chinese(globals()) | {measure.title_zh for measure in CATALOGUE.values()}
    return frozenset(each for text in texts for each in text if not each.isascii())


def _chinese(module: Mapping[str, Any]) -> set[str]:
    """Return the Chinese texts of the constants of a module: phrases, and tables of phrases."""
    constants = [value for name, value in module.items() if name.isupper()]
    values = [each for value in constants for each in (value.values() if isinstance(value, dict) else [value])]
    return {each.zh for each in values if isinstance(each, Phrase)}
