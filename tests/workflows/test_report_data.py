"""The report of a store: nothing in the data changes the page, and the page needs nothing else."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from importlib import resources
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

import adp
from adp.stores.composition import CompositionOptions, composition
from adp.stores.visible_text import visible
from adp.workflows.report import Report
from adp.workflows.report_data.plots import draw
from adp_schema.builder import RowBuilder
from tests.store_builders import write_store
from tests.stores.test_composition import EXAMPLES
from tests.workflows.hostile_store import ATTACKS, harmless, hostile_store

ALLOWED = {
    "http-equiv",
    "content",
    "name",
    "charset",
    "lang",
    "rel",
    "href",
    "class",
    "dir",
    "src",
    "srcset",
    "media",
    "alt",
    "width",
    "height",
    "id",
    "scope",
    "tabindex",
    "aria-label",
}
BIGGEST = 4_000_000


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.addresses, self.words = [], set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value for name, value in attrs if name in ("src", "srcset", "href")]
        self.words += [value for name, value in attrs if name in ("alt", "content")]

    def handle_endtag(self, tag):
        self.elements.append("/" + tag)

    def handle_data(self, data):
        self.words.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data[:80]}")

    def unknown_decl(self, data):
        raise AssertionError(f"a declaration: {data[:80]}")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    return composition(hostile_store(tmp_path_factory.mktemp("hostile") / "s"))


@pytest.fixture(scope="session")
def hostile_page(hostile):
    return Report(hostile).html()


@pytest.fixture(scope="session")
def tame(tmp_path_factory):
    return composition(hostile_store(tmp_path_factory.mktemp("tame") / "s", harmless()))


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples") / "store"
    return composition(adp.convert([str(EXAMPLES)], folder), CompositionOptions(name="examples"))


@pytest.fixture(scope="session")
def page(shown):
    return Report(shown).html()


@pytest.fixture(scope="session")
def plots(shown):
    return draw(shown)


def test_hostile_texts_leave_the_page_as_it_is(hostile_page, tame):
    page = Page(hostile_page)
    assert page.elements == Page(Report(tame).html()).elements
    assert not {"script", "svg", "iframe", "object", "form"} & set(page.elements)
    assert page.attributes <= ALLOWED
    assert len(hostile_page) < BIGGEST


def test_the_page_leads_nowhere(hostile_page):
    page = Page(hostile_page)
    for address in page.addresses:
        assert address.startswith(("data:", "#")), address[:80]
    addresses = {address[1:] for address in page.addresses if address.startswith("#")}
    assert addresses <= set(re.findall(r'<section id="([a-z]+)">', hostile_page))
    assert "default-src 'none'" in hostile_page
    assert "url(" not in hostile_page
    assert "@import" not in hostile_page


def test_hostile_texts_are_shown_as_they_are(hostile_page):
    seen = "\n".join(Page(hostile_page).words)
    assert visible(seen) == seen
    for text in ATTACKS[:9]:
        assert visible(text) in seen
    assert "{{7*7}}{% raw %}" in seen


def test_plots_hold_no_text_of_the_data(hostile):
    """Labels are outlines, so that no words of the data can be taken for markup."""
    plots = draw(hostile)
    assert len(plots) == 12
    for plot in plots.values():
        for data in (plot.light, plot.dark):
            tree = ElementTree.fromstring(data)
            assert not tree.findall(".//{http://www.w3.org/2000/svg}script")
            assert not tree.findall(".//{http://www.w3.org/2000/svg}text")
            for word in (b"alert", b"evil", b"<!--", b"taken"):
                assert word not in data
        assert plot.light != plot.dark


def test_markdown_keeps_its_structure(hostile, tame):
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

    def shape(text):
        tokens = parser.parse(text)
        inner = [child.type for token in tokens for child in token.children or []]
        return [(token.type, token.tag) for token in tokens], [
            kind for kind in inner if kind not in ("text", "text_special")
        ]

    text = Report(hostile).markdown()
    assert shape(text) == shape(Report(tame).markdown())
    assert visible(text) == text
    assert len(text) < 100_000


def test_the_same_numbers_give_the_same_bytes(shown, page, tmp_path):
    again = composition(
        adp.convert([str(EXAMPLES)], tmp_path / "other"), CompositionOptions(name="examples")
    )
    assert Report(again).html() == page
    assert Report(again).markdown() == Report(shown).markdown()


def test_settings_of_matplotlib_do_not_matter_and_stay(shown, plots):
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "font.size": 30, "lines.color": "red"}):
        kept = dict(matplotlib.rcParams)
        assert draw(shown) == plots
        assert dict(matplotlib.rcParams) == kept


def test_plots_have_only_the_colours_that_change_in_the_dark(plots):
    for plot in plots.values():
        for light, dark in zip(_colours(plot.light), _colours(plot.dark), strict=True):
            assert light != dark


def _colours(data):
    return re.findall(rb"#[0-9a-f]{6}", data)


def test_html_and_markdown_hold_the_same_cells(shown):
    cells = re.findall(r"<td[^>]*>(.*?)</td>", Report(shown).html())
    rows = [line for line in Report(shown).markdown().splitlines() if re.match(r"\| .* \|$", line)]
    assert len(cells) > 100
    heads = len(re.findall(r"<table>", Report(shown).html()))
    assert len(rows) - heads == len(re.findall(r"<tr><td", Report(shown).html()))


def test_a_store_of_nothing(tmp_path):
    result = composition(write_store(tmp_path / "s", RowBuilder()))
    page = Page(Report(result).html())
    assert "The store holds no trajectories." in page.words
    assert "img" not in page.elements
    assert "holds no trajectories" in Report(result).markdown()
    assert result.examples == ()


def test_a_name_with_half_a_character(tmp_path):
    store = write_store(tmp_path / "s", RowBuilder())
    result = composition(store, CompositionOptions(name="odd \udc80 name"))
    text = Report(result).html()
    assert "odd \\udc80 name" in text
    text.encode()
    Report(result).markdown().encode()


def test_the_template_is_part_of_the_package():
    folder = resources.files("adp.workflows.report_page")
    assert (folder / "template.html.j2").is_file()
    assert (folder / "style.css").is_file()


def test_many_data_sets(tmp_path):
    store = hostile_store(tmp_path / "s", tuple(f"data set number {n:03d}" for n in range(60)))
    text = Report(composition(store)).markdown()
    assert "10 more rows are left out." in text
    assert "\n| data set number 049 |" in text
    assert "\n| data set number 050 |" not in text


def test_plots_are_not_outside_the_page(page):
    for address in Page(page).addresses:
        if address.startswith("data:image"):
            kind, _, data = address.partition(",")
            assert kind == "data:image/svg+xml;base64"
            assert base64.b64decode(data).startswith(b"<?xml")
