"""The data card: ``README.md``, for people and, in its head, for the Hub and for `datasets`.

All numbers come from `adp.stores.composition`, as those of the report do. The head is written by a
YAML library, the text by a template; what comes from the data is escaped wherever it stands.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from jinja2 import Environment, FunctionLoader, StrictUndefined

from adp.stores.composition import Composition, Rate, Recorded
from adp.stores.licenses import Assessment
from adp.stores.markdown_text import escape, fenced
from adp.stores.visible_text import human_size
from adp.version import __version__
from adp.workflows.publish.configs import PublishedConfig
from adp.workflows.publish.findings import StoreFindings
from adp.workflows.publish.messages import describe
from adp.workflows.publish.repo import RepoId
from adp_schema.manifest import write_atomic

MOST_ROWS = 100
"""Rows of a table; more are counted."""

TAGS = ("adp", "agent", "agents", "trajectories", "agent-trajectories", "tool-use",
        "function-calling")  # fmt: skip

_TEMPLATE, _SHARED = "card.md.j2", "shared.md.j2"
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"),
          (10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"))  # fmt: skip
_WORDS = {"true": "yes", "false": "NO"}


@dataclass
class Facts:
    """What the data card and the metadata say.

    Attributes:
        repo: where the folder goes.
        title: name of the data set for people.
        tag: name of the revision, if it gets one.
        date: day of the publication.
        license: license of what states none, as the publisher says.
        configs: the configs.
        assessment: what is mixed, by license.
        findings: secrets and personal data that were found.
        redacted: whether they were replaced.
        composition: the numbers of the store.
        manifest_hash: hash of its manifest.
        losses: what the config ``messages`` could not hold.
        left_out: tables of the store that are not published.
        about: what the publisher says, in Markdown.
        traces: name of the data set of sessions, if there is one.
    """

    repo: RepoId
    title: str
    tag: str | None
    date: str | None
    license: str | None
    configs: list[PublishedConfig]
    assessment: Assessment
    findings: StoreFindings
    redacted: bool
    composition: Composition
    manifest_hash: str
    losses: dict[str, int]
    left_out: list[str]
    about: str | None
    traces: str | None


def write_card(path: Path, facts: Facts) -> None:
    """Write the data card: the YAML that the Hub reads, and the text from the template."""
    head = yaml.safe_dump(
        metadata(facts), sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000
    )
    write_atomic(path, f"---\n{head}---\n\n{_render(_TEMPLATE, _context(facts))}")


def metadata(facts: Facts) -> dict[str, Any]:
    """What the head says: the keys that the Hub and `datasets` know."""
    return {
        "pretty_name": facts.title,
        **_license(facts),
        "task_categories": ["text-generation"],
        "size_categories": [size_category(facts.composition.trajectories)],
        "tags": list(TAGS),
        "configs": [_config(config) for config in facts.configs],
        "dataset_info": [_info(config) for config in facts.configs],
    }


def _license(facts: Facts) -> dict[str, str]:
    """The license: one that the Hub knows, or ``other`` with the table below."""
    result = head_license(facts.assessment)
    if result != "other":
        return {"license": result}
    return {
        "license": result,
        "license_name": "mixed",
        "license_link": f"{facts.repo.url}#licenses",
    }


def head_license(assessment: Assessment) -> str:
    """The id of the license for the head of a data card."""
    return "unknown" if assessment.ids() == [None] else assessment.hub_license()


def size_category(rows: int) -> str:
    """How the Hub calls a number of rows."""
    return next((name for limit, name in _SIZES if rows < limit), "n>1T")


def _config(config: PublishedConfig) -> dict[str, Any]:
    files = [{"split": split.name, "path": split.pattern} for split in config.splits]
    default = {"default": True} if config.name == "messages" else {}
    return {"config_name": config.name, **default, "data_files": files}


def _info(config: PublishedConfig) -> dict[str, Any]:
    splits = [
        {"name": split.name, "num_bytes": split.bytes, "num_examples": split.rows}
        for split in config.splits
    ]
    return {
        "config_name": config.name,
        "features": [_feature(field.name, field.type) for field in config.schema],
        "splits": splits,
        "download_size": config.size,
        "dataset_size": sum(split.bytes for split in config.splits),
    }


def _feature(name: str, kind: pa.DataType) -> dict[str, Any]:
    """A column as `datasets` describes it in the head of a card."""
    values, form = (kind.value_type, "list") if pa.types.is_list(kind) else (kind, "dtype")
    return {"name": name, form: "float64" if pa.types.is_float64(values) else str(values)}


def shared(
    assessment: Assessment,
    store_findings: StoreFindings,
    license: str | None,  # noqa: A002
    redacted: bool,
) -> str:
    """What the card of another data set with the same trajectories says of them.

    Args:
        assessment: what is mixed, by license.
        store_findings: secrets and personal data that were found.
        license: license of what states none, as the publisher says.
        redacted: whether what was found was replaced.
    """
    values = {**_rights(assessment, license), "found": store_findings, "redacted": redacted}
    return _render(_SHARED, values)


def _render(name: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(name).render(values)


@functools.cache
def _environment() -> Environment:
    """What renders the templates; it keeps them compiled, which takes longer than all else here."""
    # No escaping by jinja: it knows HTML, not Markdown. Each value of the data goes through
    # `escape`; the template gets nothing else from the data but numbers.
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        loader=FunctionLoader(_template),
    )
    environment.filters.update(
        text=_text, short=lambda text: _text(text, 80), number=_number, size=human_size,
        percent=_percent, fenced=fenced,
    )  # fmt: skip
    return environment


def _template(name: str) -> str:
    return resources.files("adp.workflows.publish").joinpath(name).read_text(encoding="utf-8")


def _rights(assessment: Assessment, license: str | None) -> dict[str, Any]:  # noqa: A002
    """What the section on licenses is made from."""
    return {
        "assessment": assessment,
        "stated": license,
        "refused": assessment.refused(),
        "most": MOST_ROWS,
    }


def _context(facts: Facts) -> dict[str, Any]:
    numbers = facts.composition
    return {
        "facts": facts,
        **_rights(facts.assessment, facts.license),
        "repo": facts.repo,
        "numbers": numbers,
        "version": __version__,
        "columns": list(describe()),
        "splits": {
            config.name: [split.name for split in config.splits] for config in facts.configs
        },
        "names": [config.name for config in facts.configs],
        "first": facts.configs[0].splits[0],
        "lineage": [_act(act) for act in numbers.lineage],
        "recipes": [_recipe(act) for act in numbers.lineage if act["options"].get("recipe")],
        "losses": sorted(facts.losses.items(), key=lambda item: (-item[1], item[0])),
        "success": _rate(numbers.success),
        "reward": _mean(numbers.reward),
        "publish": lambda ranking: ", ".join(
            _WORDS.get(str(row.name).lower(), "not said") for row in ranking.rows
        ),
        "listed": lambda ranking: ", ".join(_text(row.name, 80) for row in ranking.rows),
        "revision": facts.tag or "main",
        "bibtex": _bibtex(facts),
    }


def _text(text: Any, limit: int = 200) -> str:
    """A value of the data in a line of Markdown; a dash where there is none."""
    return escape(str(text), limit) if text is not None and str(text).strip() else "-"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _percent(part: float, full: float | None = None) -> str:
    full = 1 if full is None else full
    return f"{100 * part / full:.1f} %" if full else "-"


def _rate(rate: Rate) -> str:
    """A success rate with what it is a rate of."""
    if rate.rate is None:
        return "no trajectory says"
    return (
        f"{_percent(rate.rate)} of the {rate.known:,} that say ({_percent(rate.known, rate.of)} "
        f"of {rate.of:,} do)"
    )


def _mean(value: Recorded) -> str:
    if not value.recorded or value.total is None:
        return "no trajectory has one"
    mean = value.total / value.recorded
    return f"{mean:.3g} on average of the {value.recorded:,} that have one"


def _act(act: Mapping[str, Any]) -> dict[str, Any]:
    """One entry of the lineage as text: what was done, with what, from which stores."""
    options = {name: value for name, value in sorted(act["options"].items()) if name != "recipe"}
    return {
        "act": act["act"],
        "options": [(name, value if isinstance(value, str) else json.dumps(value))
                    for name, value in options.items()],
        "versions": sorted(act["versions"].items()),
        "parents": act["parents"],
    }  # fmt: skip


def _recipe(act: Mapping[str, Any]) -> str:
    recipe = act["options"]["recipe"]
    return fenced(recipe if isinstance(recipe, str) else json.dumps(recipe, indent=2))


def _bibtex(facts: Facts) -> str:
    """The citation. Braces and backslashes of the title would end the field."""
    title = "".join(char for char in facts.title if char not in "{}\\")
    key = "".join(char for char in facts.repo.name if char.isalnum())
    return fenced(
        f"@misc{{{key},\n"
        f"  title = {{{title}}},\n"
        f"  author = {{{facts.repo.owner}}},\n"
        f"  howpublished = {{\\url{{{facts.repo.url}}}}},\n"
        f"  note = {{Revision {facts.tag or 'main'}, store {facts.manifest_hash}}}\n"
        "}"
    )
