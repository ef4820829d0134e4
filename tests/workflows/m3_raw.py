"""Raw samples in the shape that M3's own code reads, of our own writing."""

from __future__ import annotations

import json

TOOLS = [
    {"name": "trees", "description": "Trees of a garden.", "path": "/v1/trees",
     "parameters": {"garden": {"type": "string"}}},
    {"name": "owner", "description": "The owner of a garden.", "path": "/v1/owner",
     "parameters": {"garden": {"type": "string"}}},
]  # fmt: skip


def lines_of(path):
    """The objects of a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def api(question, tool, response, **arguments):
    return {
        "question": question, "question_type": "API", "answer": str(response),
        "output": [{"name": tool, "arguments": arguments}],
        "OUTPUT_AFTER_EXECUTING_API": response,
    }  # fmt: skip


def rag(question, *documents):
    return {
        "question": question, "question_type": "RAG", "db_id": "gardens",
        "rag_doc": documents[0] if len(documents) == 1 else list(documents),
    }  # fmt: skip


def sample(number, *turns, **more):
    hops = [len(hops) for _, _, hops in turns if isinstance(hops, list)]
    return {
        "sample_id": number, "type": "(API-RAG)", "tools": [dict(tool) for tool in TOOLS],
        "retrievers": ["clapnq-gardens", "clapnq-mills", "clapnq-gardens"],
        "num_turns": len(turns), "num_hops": hops,
        "turns": [
            {"query": query, "answer": answer, "gold_sequence": hops}
            for query, answer, hops in turns
        ],
        **more,
    }  # fmt: skip


TREES = [f"tree {n}" for n in range(12)]
GOOD = sample(
    7,
    ("Which trees has the mill?", TREES,
     [api("Which trees?", "trees", str({"trees": TREES}), garden="mill")]),
    ("Who owns it, and how old is it?", "Ada, and it is old.",
     [api("Who owns the mill?", "owner", {"owner": "Ada"}, garden="mill"),
      rag("How old is the mill?", "The mill is old.", "It stood in 1820.")]),
    ("And all of the wood?", TREES[:11],
     [api("Which trees?", "trees", TREES[:11], garden="wood")]),
)  # fmt: skip
SHORT = sample(8, ("Who owns it?", "Ada", [api("Who?", "owner", "Ada", garden="mill")]))
LONG = sample(9, ("All?", list(range(1025)), [api("All?", "trees", "1025", garden="mill")]))
NO_TOOLS = {key: value for key, value in SHORT.items() if key != "tools"}
NO_CALL = sample(
    11,
    ("Who?", "Ada", [api("Who?", "owner", "Ada"), {"question": "?", "question_type": "API"}]),
)
SEVERAL = sample(
    12, ("Who?", "Ada", [{**api("Who?", "owner", "Ada"), "output": [{"name": "a"}, {"name": "b"}]}])
)
WRONG = [
    None, 5, "text", [], {}, {"sample_id": 1, "tools": TOOLS}, sample(13),
    sample(14, ("q", "a", [rag("?", "d")]), retrievers=[]),
    sample(15, ("q", "a", [{**rag("?", "d"), "rag_doc": [1]}])),
    sample(16, ("q", "a", [{**api("?", "owner", None)}])), sample(17, ("q", "a", 3)),
    sample(18, ("q", "a", ["hop"])), sample(None), sample(19, (5, "a", [])),
]  # fmt: skip
SAMPLES = [GOOD, NO_TOOLS, SHORT, NO_CALL, SEVERAL, *WRONG, LONG]
