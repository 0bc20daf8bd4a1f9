"""Do seeded topics keep their subject: the classes of the held-out documents that they lead, on bbc-news."""

from __future__ import annotations

import numpy as np

import shared
import topicloom as tl

SEEDS = {3: ["match", "coach", "goal", "player"], 7: ["election", "labour", "minister", "tory"]}
SUBJECTS = {3: "sport", 7: "politics"}
MODELS: dict[str, tl.TopicModel] = {
    "GSM": tl.GSM(),
    "LDA variational": tl.LDA(),
    "LDA gibbs": tl.LDA(method="gibbs"),
}


def main() -> None:
    options = shared.parser(__doc__).parse_args()
    data = shared.held_out(shared.load(options.shared, "bbc-news"))
    labels = np.asarray(data["test_labels"])
    words = list(data["vocab"])
    for name, model in MODELS.items():
        led: dict[int, list[int]] = {topic: [] for topic in SEEDS}
        for n_topics in (10, 20):
            for seed in (0, 1):
                model.set_params(n_topics=n_topics, seed_words=SEEDS, random_state=seed)
                shared.fitted(model, data)
                leading = model.transform(data["test"]).argmax(axis=1)
                for topic in SEEDS:
                    led[topic] += labels[leading == topic].tolist()
        # A class is named by the documents that have its first seed word.
        for topic, subject in SUBJECTS.items():
            has = np.asarray(data["train"][:, words.index(SEEDS[topic][0])].todense()).ravel() > 0
            wanted = np.bincount(np.asarray(data["train_labels"])[has]).argmax()
            share = np.mean(np.array(led[topic]) == wanted)
            print(f"{name}: {len(led[topic])} documents led by topic {topic}, {share:.0%} of {subject}", flush=True)


if __name__ == "__main__":
    main()
