"""The pictures of docs/figures.md, from texts that every installation has.

Install the extras first: pip install '.[viz,clouds,zh]'. Then `python examples/figures.py FOLDER` writes the
pictures to a folder.
"""

import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

import topicloom as tl

# Invented news of three years, in which football gives way to tennis, and there is an election in the second year.
SUBJECTS = {
    "football": ["goal", "match", "league", "coach", "keeper", "penalty", "striker", "derby"],
    "tennis": ["serve", "racket", "court", "match", "final", "backhand", "coach", "seed"],
    "election": ["vote", "party", "campaign", "minister", "poll", "candidate", "debate", "seat"],
    "market": ["bank", "stock", "bond", "rate", "fund", "price", "trade", "debt"],
}


def main(epochs: int = 60, folder: str | None = None) -> list[Path]:
    with TemporaryDirectory() as temporary:
        written = list(draw(Path(folder or temporary), epochs))
        for path in written:
            print(path.name, f"{path.stat().st_size / 1000:.0f} kB")
    return written


def draw(folder: Path, epochs: int):
    folder.mkdir(parents=True, exist_ok=True)
    corpus = tl.datasets.python_docs()
    if epochs < 10:  # a trial
        corpus = corpus[np.isin(corpus.labels, ["turtle", "smtplib", "statistics", "email", "asyncio", "tkinter"])]
    topics = tl.Topics(tl.ETM(n_topics=20, epochs=epochs, random_state=0).fit(corpus), corpus)
    for kind in ("map", "words", "sparsity", "similarity", "simplex"):
        yield save(folder, kind, tl.figures.draw(topics, kind))
    yield save(folder, "network", [tl.diagram(topics.model)])
    yield save(folder, "network-zh", [tl.diagram(topics.model, language="zh")])
    few = tl.Topics(tl.GSM(n_topics=5, epochs=epochs, random_state=0).fit(corpus), corpus)
    yield save(folder, "clouds", tl.figures.draw(few, "clouds"))
    yield save(folder, "interpolation", tl.figures.draw(few, "interpolation", documents=["turtle", "smtplib"]))
    yield save(folder, "clouds-zh", tl.figures.draw(chinese(epochs), "clouds"))
    over_time = news(epochs)
    yield save(folder, "time", tl.figures.draw(over_time, "time", period="quarter"))
    yield save(folder, "stream", tl.figures.draw(over_time, "time", period="quarter", stream=True))


def save(folder: Path, name: str, pages: list) -> Path:
    path = folder / f"figures-{name}.png"
    tl.figures.save(pages[0], path)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)  # 64 colours: a third of the size
    return path


def chinese(epochs: int) -> tl.Topics:
    example = runpy.run_path(str(Path(__file__).with_name("chinese.py")))
    corpus = tl.Corpus.from_texts((example["SPORT"] + example["MARKET"]) * 20, language="zh")
    return tl.Topics(tl.LDA(n_topics=2, epochs=epochs, random_state=0).fit(corpus), corpus)


def news(epochs: int) -> tl.Topics:
    random = np.random.default_rng(0)
    days = np.sort(random.integers(0, 3 * 365, 900))
    texts = []
    for day in days / 365:
        shares = np.array([3 - day, 0.3 + day, 2 * np.exp(-30 * (day - 1.5) ** 2), 1.0])
        subject = random.choice(list(SUBJECTS), p=shares / shares.sum())
        texts.append(" ".join(random.choice(SUBJECTS[subject], 15)))
    dates = np.datetime64("2023-01-01") + days
    corpus = tl.Corpus.from_texts(texts, language="en", max_df=1.0, timestamps=dates.astype(str).tolist())
    return tl.Topics(tl.GSM(n_topics=4, epochs=epochs, random_state=0).fit(corpus), corpus)


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "figures")
