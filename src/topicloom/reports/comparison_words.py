"""The words of the page of a comparison, and of the reason for a recommended number of topics."""

from __future__ import annotations

from .wording import Phrase

TITLE = Phrase("Comparison of topic models", "主题模型的比较")
ABOUT = Phrase(
    "{size}; documents: {parts}. Mean ± standard deviation over seeds; the best mean of each number of topics is bold. "
    "No single column says which model is better: C_v alone, for example, rewards topics that are all alike.",
    "{size}；文档：{parts}。表中是各随机种子的平均值 ± 标准差；每个主题数中最好的平均值用粗体。没有哪一列能单独说明哪个"
    "模型更好：例如只看 C_v，彼此相同的主题得分最高。",
)
SIZE = Phrase("{models}, {n_topics}, {seeds}", "{models}，{n_topics}，{seeds}")
PART = Phrase("{n} {part}", "{part} {n} 篇")
PARTS = {
    "train": Phrase("train", "训练"),
    "validation": Phrase("validation", "验证"),
    "test": Phrase("test", "测试"),
}
COUNTED = {  # Each has a phrase for one and a phrase for several.
    "model": (Phrase("{n:,} model", "{n:,} 个模型"), Phrase("{n:,} models", "{n:,} 个模型")),
    "number of topics": (
        Phrase("{n:,} number of topics", "{n:,} 种主题数"),
        Phrase("{n:,} numbers of topics", "{n:,} 种主题数"),
    ),
    "seed": (Phrase("{n:,} seed", "{n:,} 个随机种子"), Phrase("{n:,} seeds", "{n:,} 个随机种子")),
}
AND_VERSION = Phrase(" and ", " 和 ")
FITTED_BY = Phrase("Fitted by topicloom {versions}.", "由 topicloom {versions} 训练。")
AND = Phrase(" and ", "和 ")  # between measures
COMMA = Phrase(", ", "、")
CLAUSE = Phrase(" and ", "，")
DIFFERENT_VERSIONS = Phrase("Figures of different versions may not be comparable.", "不同版本的数值可能无法比较。")
FAILED = Phrase("{n_failed} of {n} fits ended in an error:", "{n} 次训练中有 {n_failed} 次以错误结束：")
FAILED_FIT = Phrase(
    "{model}, {n_topics} topics, seed {seed}: {error}", "{model}，{n_topics} 个主题，随机种子 {seed}：{error}"
)
VALIDATION = Phrase("Validation documents", "验证文档")
CHOOSE = Phrase("Choose models and settings by these figures.", "请按这些数值选择模型和设置。")
TEST = Phrase("Test documents", "测试文档")
REPORT = Phrase("Report these figures for the models that were chosen.", "请报告选定模型的这些数值。")
ONCE = Phrase("Measures of the topics", "主题的指标")
ONCE_NOTE = Phrase(
    "These figures are measured on the topics, or, for coherence, on their words in {reference}. They do not depend on "
    "validation or test documents.",
    "这些数值由主题本身算出，一致性则由代表词在{reference}中的出现情况算出，与验证文档和测试文档无关。",
)
TRAINING_DOCUMENTS = Phrase("the training documents", "训练文档")
EVERY_FIT = Phrase("Every fit", "每次训练")
MEASURED_ON_TEST = Phrase("Measured on test documents.", "在测试文档上测量。")
TOPICS = Phrase("Topics", "主题")
OF_FIRST_SEED = Phrase("Topics of the first seed.", "第一个随机种子的主题。")
RETURNS_NOTE = Phrase(
    "The cells show how similar each topic is to its partner in the other fits of the model, matched one to one. A "
    "topic returns if the similarity is {threshold:g} or more; other cells are grey.",
    "单元格表示每个主题与该模型的其他训练中一一配对的主题有多相似。相似度达到 {threshold:g} 即为重现；"
    "其余单元格为灰色。",
)
RETURNS = Phrase("returns", "重现")
OTHER_FIT = Phrase("fit {n}", "训练 {n}")
TOPICS_OF = Phrase("{model}, {n_topics} topics", "{model}，{n_topics} 个主题")
NUMBERS_OF_TOPICS = Phrase("Numbers of topics", "主题数")
CURVE = Phrase(
    "Means over seeds on validation documents, with standard errors. A dotted line marks the recommended number.",
    "验证文档上各随机种子的平均值及标准误。点线标出推荐的主题数。",
)
RECOMMENDED = Phrase("{model}: {reason}", "{model}：{reason}")
MODEL = Phrase("model", "模型")
PAIRED = Phrase("Paired tests", "配对检验")
PAIRED_NOTE = Phrase(
    "For each measure, the model that is best on the validation documents is compared with every other model on the "
    "test documents. Fits with the same seed and number of topics are paired. The interval is that of the mean "
    "difference, by Student's t, and p is that of a two-sided paired t-test. The last column corrects p after Holm for "
    "the tests of all pairs of models by the same measure, because the best model is chosen by the same fits; rely on "
    "it. With few pairs, only large differences are significant.",
    "对每个指标，取在验证文档上最好的模型，在测试文档上把它与其他每个模型比较。随机种子和主题数都相同的两次训练组成一对。"
    "区间是平均差值的置信区间（t 分布），p 是双侧配对 t 检验的 p 值。最好的模型是由同样的训练选出的，因此最后一列按同一"
    "指标下所有成对模型的检验作 Holm 校正，请以它为准。对数少时，只有很大的差异才显著。",
)
PAIRED_COLUMNS = {
    "measure": Phrase("measure", "指标"), "model": MODEL, "against": Phrase("against", "对比模型"),
    "difference": Phrase("difference", "差值"), "interval": Phrase("95 % interval", "95% 区间"),
    "pairs": Phrase("pairs", "对数"), "p": Phrase("p", "p"), "p_holm": Phrase("p, Holm", "p（Holm 校正）"),
}  # fmt: skip
INTERVAL = Phrase("{low} to {high}", "{low} 至 {high}")

# Why a number of topics is recommended.
AGREEMENT = Phrase(
    "{k} topics are recommended: the smallest number that is within one standard error of the best by {measures}. "
    "It has {parts}.",
    "推荐 {k} 个主题：按{measures}，在与最好的值相差不超过一个标准误的主题数中，它是最小的。{parts}。",
)
AS_GOOD = Phrase("{measure} {value} ({best})", "{measure}为 {value}（{best}）")
THE_BEST = Phrase("the best", "最好")
THE_BEST_IS = Phrase("the best is {value} with {k}", "最好的是 {k} 个主题时的 {value}")
COMPROMISE = Phrase(
    "{k} topics are recommended as a compromise, because the measures disagree: {tops}. {k} topics balance them best, "
    "with {parts}.",
    "推荐 {k} 个主题，这是折中的结果，因为两个指标不一致：{tops}。{k} 个主题最能兼顾两者：{parts}。",
)
TOP = Phrase("{measure} is best with {k} topics ({value})", "{measure}在 {k} 个主题时最好（{value}）")
MEASURED = Phrase("{measure} {value}", "{measure}为 {value}")
ONLY_ONE = Phrase(
    "Only one number of topics was tried, so there is nothing to choose from; try several numbers. {k} topics have "
    "{parts}.",
    "只试了一个主题数，因此无从选择；请试几个不同的主题数。{k} 个主题的{parts}。",
)
ONLY_ONE_MEASURED = Phrase(
    "Only the fits with {k} topics could be measured, so there is nothing to choose from; see why the others failed. "
    "{k} topics have {parts}.",
    "只有 {k} 个主题的训练可以测量，因此无从选择；请查看其他训练失败的原因。{k} 个主题的{parts}。",
)
ONE_FIT = Phrase(
    "The standard error counts as 0, because the best number has a single fit; try several seeds.",
    "最好的主题数只训练了一次，因此标准误按 0 计算；请试几个随机种子。",
)
LARGEST = Phrase(
    "It is the largest number that was tried, so try larger ones too.", "这是试过的最大的主题数，请再试更大的。"
)
SMALLEST = Phrase(
    "It is the smallest number that was tried, so try smaller ones too.", "这是试过的最小的主题数，请再试更小的。"
)
