"""Trajectories that say nearly the same: of each group one stays.

What is compared are the words of the agent and its calls, not system prompts and tool schemas
(option ``views``). From them come shingles: five words in a row within one message. Shingles of
more than one in a hundred documents are left out, over all inputs, for boilerplate would make
everything alike; so a group of near copies that makes up more than that share of the documents
is not seen as one (equal ones count once; raise ``common`` for it). MinHash signatures find
candidates, and the exact Jaccard similarity of what is left of their shingles decides about each
pair. Clusters are stars around an anchor, which is the one that stays.

A document with few shingles of its own is never called near: it only goes when its whole text,
task included, is equal to another one's. Attempts at one task, by the task ids of the source, are
not compared with each other. When a cluster or the loss of a data set is suspiciously big, the op
stops instead of emptying the data: see ``alarm``.

Each pair exactly at the threshold is found with a probability of at least 99.5 %, those above it
sooner: the number of bands follows from the threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from adp.curation.op import Op
from adp.curation.ops.dedup_near.options import DedupNear
from adp.curation.ops.dedup_near.passes import find
from adp.curation.survivors import keep_columns


def _needs(options: DedupNear) -> Iterable[str]:
    return keep_columns(options.keep)


def _columns(options: DedupNear) -> Mapping[str, str]:
    return {
        "near_cluster": "trajectory_id of the anchor of the cluster, the one that stays.",
        "near_cluster_size": "Trajectories of the cluster, itself included.",
        "near_jaccard": "Jaccard similarity to the anchor; null for anchors.",
    }


OP = Op(
    name="dedup_near",
    title="Of trajectories in which the agent says and does nearly the same, keep one.",
    options=DedupNear,
    run=find,
    cost="Reads the compared texts once, and writes 16 bytes a word and 300 a trajectory for the "
    "time of the run; memory for about 150 bytes a trajectory.",
    source='MinHash and banding: Broder 1997, "On the resemblance and containment of documents"; '
    "Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3. Anchored clusters "
    "with verified pairs instead of connected components.",
    needs=_needs,
    columns=_columns,
)
