"""What a search shows: limits, the cache, summaries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.corpus import Document
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.searching.searcher import NOTHING, Searcher, SearchLimits
from adp.rollouts.searching.summary import Summarizer
from adp.rollouts.turns import Turn


class Counted:
    """Documents that count how often they are searched."""

    def __init__(self):
        self.asked = []

    def search(self, query, limit):
        self.asked.append(query)
        return [(Document(str(n), "T", f"{query} " * 50), 1.0) for n in range(limit)][: len(query)]


@given(st.integers(1, 5), st.integers(1, 400), st.integers(1, 2000))
def test_nothing_is_longer_than_its_limit(documents, characters, total):
    result = Searcher(Counted(), SearchLimits(documents, characters, total)).result("word")
    assert len(result.text) <= total + 4
    assert len(result.structured) == min(documents, 4)
    for part in result.text.split("\n\n"):
        assert len(part.partition("\n")[2]) <= characters + 4


def test_a_query_is_asked_once(tmp_path):
    documents = Counted()
    makers = [Searcher(documents, SearchLimits(2), "here", tmp_path / "c.db") for _ in range(2)]
    first = makers[0].result("Height of  Etna")
    assert makers[1].result("height of etna") == first
    assert documents.asked == ["Height of  Etna"]
    other = Searcher(documents, SearchLimits(2), "there", tmp_path / "c.db")
    other.result("height of etna")
    assert len(documents.asked) == 2
    assert Searcher(documents, SearchLimits(2)).result("").text == NOTHING


def summarizer(*answers):
    prompts = []

    def script(request):
        prompts.append(request.messages[0]["content"])
        return answers[len(prompts) - 1]

    return Summarizer("scripted", Scripted(script)), prompts


def test_a_summary_stands_in_for_the_pages(tmp_path):
    made, prompts = summarizer(Turn(text=" It is high. "))
    searcher = Searcher(Counted(), SearchLimits(2), "", tmp_path / "c.db", made)
    result = searcher.result("etna")
    assert result.text == "It is high."
    assert [hit["id"] for hit in result.structured] == ["0", "1"]
    assert searcher.result("Etna").text == "It is high."
    assert len(prompts) == 1
    assert "<<<QUERY\netna\nQUERY>>>" in prompts[0]
    assert "[0] T\netna etna" in prompts[0]


def test_a_summary_that_fails_is_nobodys_fault():
    made, _ = summarizer(Turn(text=""), Turn(text="x", malformed="no JSON"))
    searcher = Searcher(Counted(), SearchLimits(1), summary=made)
    for reason in ("it is empty", "no JSON"):
        with pytest.raises(InfrastructureError, match=reason):
            searcher.result("etna")
