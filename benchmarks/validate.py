"""Evaluate settings of a model on 15 % of the training documents, never on the test documents.

    python benchmarks/validate.py ETM --corpora m10,bbc-news --topics 20,50 --set learning_rate=0.005 --set alpha=1.0
    python benchmarks/validate.py "ETM cbow" --corpora m10,bbc-news --topics 20 --seeds 2 --set whiten=none/length

--set name=value1/value2 tries several values, and every combination of the settings is run.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import shared

COLUMNS = (
    "seconds", "npmi", "td", "npmi6", "td6", "twins", "npmi_own", "td_own", "npmi0", "td0",
    "purity", "nmi", "acc", "ppl", "own_ppl", "bound_ratio", "alive",
)  # fmt: skip


def value(text: str) -> object:
    """Read a value as JSON; any other text is returned as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("model", help='name of a class or of a variant, such as ETM or "ETM cbow"')
    parser.add_argument("--corpora", default="bbc-news,m10,20ng", help="names, separated by commas")
    parser.add_argument("--topics", default="20,50", help="numbers of topics, separated by commas")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    metavar = "NAME=VALUE[/VALUE...]"
    parser.add_argument("--set", action="append", default=[], metavar=metavar, help="a setting; may be repeated")
    options = parser.parse_args()
    variant = shared.VARIANTS.get(options.model) or shared.Variant(options.model, options.model)
    names = [text.split("=", 1)[0] for text in options.set]
    choices = [[value(part) for part in text.split("=", 1)[1].split("/")] for text in options.set]
    print("corpus K seed", *COLUMNS, "settings", flush=True)
    for corpus in options.corpora.split(","):
        data = shared.held_out(shared.load(options.shared, corpus))
        for n_topics in map(int, options.topics.split(",")):
            for values in product(*choices):
                for seed in range(options.seeds):
                    settings = dict(zip(names, values, strict=True))
                    model = replace(variant, settings=variant.settings | settings).make(n_topics, seed, data)
                    model, seconds = shared.fit(model, data)
                    row = {"seconds": seconds} | shared.evaluate(options.shared, data, model)
                    figures = (f"{row[name]:.4g}" if name in row else "-" for name in COLUMNS)
                    print(corpus, n_topics, seed, *figures, settings, flush=True)


if __name__ == "__main__":
    main()
