"""The report in a real browser: plots are there, nothing is loaded, nothing runs."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pytest

import adp
from adp.stores.composition import CompositionOptions, composition
from adp.workflows.report import Report
from adp_schema.builder import RowBuilder
from tests.store_builders import write_store
from tests.stores.test_composition import DATA, EXAMPLES
from tests.workflows.hostile_store import hostile_store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed"
)

LOOKS = [(1280, 900, False), (390, 844, True)]
"""Width and height of the window, and whether the reader wants dark colours."""

# Every element that is wider than the page, or a text that sticks out of its box.
OUTSIDE = """
return [...document.querySelectorAll('main *, header *, .tiles *, nav *')].filter(e => {
  if (e.closest('.scroll') && !e.classList.contains('scroll')) return false;
  return e.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(e => e.tagName + ' ' + e.className);
"""
IMAGES = """
return [...document.images].map(i => [i.complete, i.naturalWidth, i.currentSrc.slice(0, 40)]);
"""


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    words = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    # Chromium has no sandbox for the superuser, whom containers often run as.
    words += ["--no-sandbox"] if os.getuid() == 0 else []
    for word in words:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of examples, of hostile texts, of nothing, and of real samples, if they are there."""
    root = tmp_path_factory.mktemp("pages")
    stores = {
        "examples": adp.convert([str(EXAMPLES)], root / "examples"),
        "hostile": hostile_store(root / "hostile"),
        "empty": write_store(root / "empty", RowBuilder()),
    }
    if (DATA / "adp_v1").is_dir():
        folders = [str(folder) for folder in sorted((DATA / "adp_v1").iterdir())]
        stores["samples"] = adp.convert(folders, root / "samples")
    written = {}
    for name, store in stores.items():
        written[name] = root / f"{name}.html"
        options = CompositionOptions(name=name)
        written[name].write_text(Report(composition(store, options)).html(), encoding="utf-8")
    return written


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("examples", marks=pytest.mark.slow),
        "hostile",
        "empty",
        pytest.param("samples", marks=pytest.mark.slow),
    ],
)
def test_in_a_browser(browser, pages, name):
    if name not in pages:
        pytest.skip("the shared samples are not there")
    for width, height, dark in LOOKS:
        look(browser, width, height, dark=dark)
        browser.get(pages[name].as_uri())
        check(browser, pages[name], name, dark=dark)


def look(browser, width, height, *, dark):
    """Set the size of the window and the colours that the reader wants."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def check(browser, path: Path, name: str, *, dark: bool, kind: str = "data report") -> None:
    assert browser.title == f"{name} - {kind}"
    assert browser.get_log("browser") == []
    images = browser.execute_script(IMAGES)
    assert bool(images) == (name != "empty")
    for complete, width, source in images:
        assert complete
        assert width > 0
        assert source.startswith("data:image/svg+xml;base64,")
    assert browser.execute_script("return document.scripts.length") == 0
    assert browser.execute_script(OUTSIDE) == []
    for address in requests(browser):
        assert address == path.as_uri() or address.startswith("data:"), address[:100]
    colours = screenshot_colours(browser)
    assert len(colours) > 20
    back, _ = max(colours.items(), key=lambda item: item[1])
    assert (sum(back) < 3 * 64) == dark


def requests(browser) -> list[str]:
    """Addresses that the page asked for since the last look."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages
             if m["method"] == "Network.requestWillBeSent"]  # fmt: skip
    assert asked, "the log of the network is empty"
    return asked


def screenshot_colours(browser) -> dict[tuple[int, int, int], int]:
    """Colour -> pixels of the first screen."""
    from PIL import Image

    with Image.open(io.BytesIO(browser.get_screenshot_as_png())) as image:
        getcolors = image.convert("RGB").getcolors(1 << 24)
    return {colour: count for count, colour in getcolors}


def test_the_log_would_show_a_request(browser, tmp_path):
    """The tests above can fail: a page that loads something and runs something is seen."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<title>x</title><img src='http://127.0.0.1:9/x.png'><script>console.error('seen')</script>"
    )
    browser.get(page.as_uri())
    assert "http://127.0.0.1:9/x.png" in requests(browser)
    assert any("seen" in entry["message"] for entry in browser.get_log("browser"))
