"""Topics of Chinese text: sentences are segmented into words, and stop words are removed.

Install the extra `zh` first: pip install '.[zh]'. Run the example with: python examples/chinese.py
"""

import topicloom as tl

SPORT = [
    "球队在比赛中赢得冠军",
    "教练对球员的训练很满意",
    "球迷观看足球比赛",
    "球员在比赛中受伤",
    "冠军球队的教练接受采访",
]
MARKET = [
    "银行降低贷款利率",
    "股票市场今天上涨",
    "投资者关注银行的股票",
    "基金公司增加市场投资",
    "利率上涨影响股票投资",
]


def main(epochs: int = 200) -> list[list[str]]:
    texts = (SPORT + MARKET) * 20
    corpus = tl.Corpus.from_texts(texts, language="zh")  # the default, "auto", would recognise it
    print("分词:", *corpus.tokenizer(SPORT[0]))
    model = tl.GSM(n_topics=2, epochs=epochs, batch_size=20, random_state=0).fit(corpus)
    topics = model.topics(top_n=6)
    for number, words in enumerate(topics):
        print(f"主题 {number}:", *words)
    return topics


if __name__ == "__main__":
    main()
