"""Locations that cannot be read, and what to write instead."""

import fsspec
import pytest

from adp.converters.inputs import collect
from adp_schema import location
from adp_schema.errors import InputError, StoreError
from adp_schema.hub import parse
from adp_schema.store import Store

PAGES = {
    "https://huggingface.co/datasets/me/demo": "hf://datasets/me/demo",
    "https://huggingface.co/datasets/me/demo/": "hf://datasets/me/demo",
    "http://hf.co/datasets/me/demo?row=3#x": "hf://datasets/me/demo",
    "https://huggingface.co/datasets/me/demo/tree/main": "hf://datasets/me/demo",
    "https://huggingface.co/datasets/me/demo/viewer/default/train": "hf://datasets/me/demo",
    "https://huggingface.co/datasets/me/demo/tree/v1/a/b": "hf://datasets/me/demo@v1/a/b",
    "https://huggingface.co/datasets/me/demo/blob/main/a.jsonl": "hf://datasets/me/demo/a.jsonl",
    "https://huggingface.co/datasets/me/demo/tree/refs/pr/3/a": "hf://datasets/me/demo@refs/pr/3/a",
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_hub(page):
    assert location.hub_form(page) == PAGES[page]
    parse(PAGES[page])
    with pytest.raises(StoreError, match=f"write {PAGES[page]}$"):
        Store.open(page)
    with pytest.raises(InputError, match=f"write {PAGES[page]}$"):
        collect([page])


@pytest.mark.parametrize(
    ("url", "error", "advice"),
    [
        ("s3://a/b", ImportError("Install s3fs to access S3"), "s3:// addresses, install s3fs"),
        (
            "https://a.b/c",
            ImportError('HTTPFileSystem requires "requests" and "aiohttp" to be installed'),
            "to read https:// addresses, install requests and aiohttp",
        ),
        ("zzz://a", None, "nothing here reads zzz:// addresses; write a local path"),
    ],
)
def test_what_a_protocol_lacks(monkeypatch, url, error, advice):
    if error is not None:

        def fail(protocol):
            raise error

        monkeypatch.setattr(fsspec, "get_filesystem_class", fail)
    with pytest.raises(StoreError, match=advice):
        Store.open(url)
    with pytest.raises(InputError, match="is read alone"):
        collect([url])
