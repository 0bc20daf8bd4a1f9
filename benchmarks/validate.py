"""Settings are chosen here: figures on 15 % of the training documents, never on the test documents.

    python benchmarks/validate.py ETM --corpora m10,bbc-news --topics 20,50 --set learning_rate=0.005 --set alpha=1.0

Give --set name=value1/value2 to try several; every combination is run.
"""

from __future__ import annotations

import json
from itertools import product

import shared
import topicloom as tl

COLUMNS = (
    "seconds", "npmi", "td", "npmi6", "td6", "twins", "npmi_own", "td_own", "npmi0", "td0",
    "purity", "nmi", "acc", "ppl", "own_ppl",
)  # fmt: skip


def value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("--corpora", default="bbc-news,m10,20ng")
    parser.add_argument("--topics", default="20,50")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE[/VALUE...]")
    options = parser.parse_args()
    names = [text.split("=", 1)[0] for text in options.set]
    choices = [[value(part) for part in text.split("=", 1)[1].split("/")] for text in options.set]
    print("corpus K seed", *COLUMNS, "settings", flush=True)
    for corpus in options.corpora.split(","):
        data = shared.held_out(shared.load(options.shared, corpus))
        for n_topics in map(int, options.topics.split(",")):
            for values in product(*choices):
                for seed in range(options.seeds):
                    settings = dict(zip(names, values, strict=True))
                    model = getattr(tl, options.model)(n_topics, random_state=seed, **settings)
                    model, seconds = shared.fitted(model, data)
                    row = {"seconds": seconds} | shared.judged(options.shared, data, model)
                    figures = (f"{row[name]:.4g}" if name in row else "-" for name in COLUMNS)
                    print(corpus, n_topics, seed, *figures, settings, flush=True)


if __name__ == "__main__":
    main()
