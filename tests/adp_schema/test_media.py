"""Base64 leaves the text and comes back."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from adp_schema import media


@given(st.binary(min_size=24, max_size=80), st.text(max_size=10), st.text(max_size=10))
def test_data_uris_in_text_come_back(data, before, after):
    text = f"{before} data:image/png;base64,{base64.b64encode(data).decode()} {after}"
    lifted, blobs = media.lift(text)
    assert [blob.data for blob in blobs] == [data]
    assert "base64" not in lifted.removeprefix(before).removesuffix(after)
    assert media.restore(lifted, {blob.media_id: blob for blob in blobs}) == text


def test_base64_that_would_not_come_back_stays():
    text = "data:image/png;base64," + "A" * 41
    assert media.lift(text) == (text, [])
    loose = "data:image/png;base64," + "A" * 39 + "B="
    assert media.lift(loose) == (loose, [])


@given(st.text(max_size=40))
def test_references_come_back(reference):
    assert media.reference_of_media(media.media_of_reference(reference)) == reference


def test_reference_with_bytes():
    uri = "data:image/png;base64," + base64.b64encode(b"x" * 40).decode()
    blob = media.media_of_reference(uri)
    assert (blob.data, blob.mime, blob.size) == (b"x" * 40, "image/png", 40)
    assert media.reference_of_media(blob) == uri
