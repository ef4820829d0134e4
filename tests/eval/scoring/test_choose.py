from __future__ import annotations

import json

import pytest

from adp.eval.scoring.choose import choose, label, rebuild, specs
from adp_schema.errors import UsageError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a", ["a"]),
        (" a , b ", ["a", "b"]),
        ("a:x=1,y=2,b", ["a:x=1,y=2", "b"]),
        ("a:x=1,b:y=2", ["a:x=1", "b:y=2"]),
        ("a:url=http://h:1/v1,model=m,b", ["a:url=http://h:1/v1,model=m", "b"]),
        ("a:x=[1,b],y='c,d',e.yaml", ["a:x=[1,b],y='c,d'", "e.yaml"]),
        (",,", []),
    ],
)
def test_a_setting_belongs_to_the_scorer_before_it(text, wanted):
    assert specs(text) == wanted


@pytest.mark.usefixtures("small_scorers")
class TestChoose:
    def test_settings_are_kept_whole_and_without_secrets(self):
        first, second = choose(["plain,plain:mode=two,words=[a, b],api_key=sk-2"])
        assert json.loads(second.settings) == {
            "mode": "two", "words": ["a", "b"], "api_key": "***",
        }  # fmt: skip
        assert first.settings_hash != second.settings_hash
        assert rebuild("plain", second.settings).name == "plain"
        assert first.against("gold 1").settings_hash != first.settings_hash
        assert rebuild("plain", first.against("gold 1").settings).name == "plain"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "name a scorer; known: doubtful, plain"),
            ("plane", "did you mean plain"),
            ("plain:colour=red", "unknown setting 'colour'; known: api_key, mode, words"),
            ("plain,plain", "twice"),
        ],
    )
    def test_what_is_wrong_is_said(self, text, message):
        with pytest.raises(UsageError, match=message):
            choose([text])

    def test_a_scorer_that_is_gone(self):
        assert rebuild("gone", "{}") is None
        assert rebuild("plain", '{"old": 1}') is None
        assert rebuild("plain", "no JSON") is None


def test_a_score_table_names_no_code(tmp_path, monkeypatch):
    """A downloaded store may hold scores whose settings name a file of Python beside them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\nclass P:\n  act = None\n")
    assert rebuild("judge", '{"policy": "evil.py:P"}') is None
    assert rebuild("evil.py:P", "{}") is None
    assert label("evil.py:P", "{}") == "evil.py:P"
    assert not (tmp_path / "ran").exists()


def test_a_scorer_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from adp.eval.scorer import ScorerKind\nfrom adp.rollouts.environment import Settings\n"
        "KIND = ScorerKind('x', 'about', Settings, lambda settings: 1 / 0)\n",
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match=r"mine.py:KIND cannot be made: ZeroDivisionError"):
        choose([f"{tmp_path / 'mine.py'}:KIND"])
