"""Check whether topics with seed words keep their subject, on bbc-news.

For each seeded topic, the script counts the held-out documents that have it as their main topic, and the share of these
that belong to the class of the seed words.
"""

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
        labels_of_topic: dict[int, list[int]] = {topic: [] for topic in SEEDS}
        for n_topics in (10, 20):
            for seed in (0, 1):
                model.set_params(n_topics=n_topics, seed_words=SEEDS, random_state=seed)
                shared.fit(model, data)
                main_topic = model.transform(data["test"]).argmax(axis=1)
                for topic in SEEDS:
                    labels_of_topic[topic] += labels[main_topic == topic].tolist()
        # The class of a subject is the most frequent class of the documents that contain its first seed word.
        for topic, subject in SUBJECTS.items():
            has = np.asarray(data["train"][:, words.index(SEEDS[topic][0])].todense()).ravel() > 0
            expected = np.bincount(np.asarray(data["train_labels"])[has]).argmax()
            found = np.array(labels_of_topic[topic])
            share = np.mean(found == expected)
            print(f"{name}: {len(found)} documents have the main topic {topic}, {share:.0%} of {subject}", flush=True)


if __name__ == "__main__":
    main()
