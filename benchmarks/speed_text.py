"""The words of the page of speed.py."""

HEAD = """# Training speed beside other packages

`make bench-speed` writes this page, [speed.csv](speed.csv) with every measurement, and the picture. Each fit runs in a
process of its own, in turn with those of the other packages. Other work on the machine changes elapsed times by far
more than processor times, so processor seconds of one thread are compared; elapsed seconds of two threads stand beside
them. Both include the processes that a package starts. An epoch or iteration is one pass over all documents; the first
of a fit is not counted.

{coverage}

{slower}
![quality against time, and the time of an epoch as a corpus grows](speed.png)

Inference, the latency of single documents and corpus building have pages of their own, which the table of
[README.md](README.md) lists.

## An epoch on 20 Newsgroups

{docs:,} documents, {tokens:,.0f} tokens, V={words:,}, K=50. The settings are each package's defaults, except that ours
are measured without spare topics, which a fit removes in its first epochs, and topica's samplers have the Dirichlet
parameter .1 for each topic. ETM of TopMost and topica have random word vectors of 200 dimensions that are not trained,
as is TopMost's default; ours trains 300 dimensions. FASTopic has vectors of documents by latent semantic analysis,
whose making is not timed. "whole fit" has the processor seconds of the default or recommended number of epochs.
An epoch of Loom is a pass of its sampling stage. A default fit has 85 of these on this corpus, after 12 epochs of
pretraining and 28 of counting, which take longer, so that its whole fit takes more than is shown here.
An epoch of a neural model and an iteration of a sampler do not have the same effect; "Time to a quality" compares what
they reach.

"""
COVERAGE = """\
**The run is not complete.** There are three rounds of {each} fits for the time of an epoch, of which {several} are
in the tables; figures are medians of these. For the time to a quality there are {curves_done} of {curves} fits, and for
the growth {growth_done} of {growth}. Besides, {disturbed} fits with two threads were measured but are left out, because
other work on the machine took a core from them: their elapsed time was more than 1.2 times their processor time, or the
processor time more than 3 times that with one thread. Cells without a fit say "{missing}"."""
EQUAL = """
## With equal settings

The same model with the same number of topics and threads, encoder widths, batches and dimensions of word vectors; word
vectors are trained by TopMost and by us, and not by topica. Ratios are theirs divided by ours. "> 30 s" is a fit that
was ended after 30 processor seconds for each thread, before the end of its second epoch.

"""
FLOOR = """
## Beside the memory's bandwidth

A triad as in STREAM moved {one:.1f} GB/s with one thread and {two:.1f} with two; within caches it was {inside:.0f} GB/s
with one. `bandwidth.py` derives the bytes that a token costs at least, and without any cache. The shares are bytes per
second by either count, divided by the bandwidth of one thread. The topics and the encoder of this corpus fit into the
processor's caches, so "without a cache" may exceed 100 %.

"""
CURVES = """
## Time to a quality

Fits with the defaults and K=50, two threads, one seed, without 15 % of the documents, which are held out. NPMI is
that of the ten top words over the held-out documents, at relevance .6 (or by weight, where topics are no
distributions), by the measure of this package. Perplexity scores one half of each held-out document, given theta of
the other half by the inference of the package that fitted the model. Ours and topica's are whole fits of different
lengths, the others snapshots of one fit, which ends after 60 processor seconds; the time of snapshots does not count.
The samples that topica's LDA averages after its iterations are part of its fits. Targets are what {reference} reaches
with {epochs} iterations: {aims}. "-" is a target that was not reached, or a perplexity that cannot be computed
because the topics are no distributions.

"""
ENDS = """
## To the quality of TopMost at its end

TopMost's ETM and ProdLDA train with one thread and K=50, by default for 200 epochs, without 15 % of the training
documents, which are held out. The targets are the NPMI of their topics on the held-out documents at the end. Words of
ETM are ranked by probability, or by relevance .6. Those of ProdLDA are ranked by weight, and those of the others then
as the package itself ranks words. Ours are whole fits of different lengths with the defaults in all else, because the
schedule depends on the number of epochs. The time is that of the shortest fit that reaches a target, in processor
seconds, and "share" is that time divided by TopMost's. "-" is a target that no fit reaches.

A fit of an epoch starts at clusters of documents and has coherent topics, but some of them are alike. The column with
TD has the time until all targets are reached with distinct topics: TD (25 words, relevance .6) is at least .75 there.
"-" in this column can also mean that no longer fit was measured. "best NPMI" is the highest of all fits (or
snapshots): by probability, by relevance .6 and by the package's ranking. One seed; other work was on the machine, which
makes processor times longer, too.

"""
GROWN = """
## As a corpus grows

Documents of about 60 words, drawn from 50 planted topics with Zipf's frequencies. One factor differs from D={docs:,},
V={words:,}, K={topics}. Milliseconds of one core per 1,000 documents and epoch; below, peak memory in GiB with the
package's own form of the documents. "> N" is a fit that was ended after N processor seconds without a whole epoch after
the first; the limit is longer for the largest D, V and K, and
these cells were measured while another process used the second core. "memory" needs more than 11 GiB.

"""
