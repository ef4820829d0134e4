"""Texts in base64 that hold a secret are replaced as a whole, texts of PNG files are cleaned."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
import zlib

import pytest

import adp
from adp.stores.redact import redact
from adp.stores.redact.blob_texts import texts_of_blob
from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RedactOptions
from adp_schema.ids import digest
from adp_schema.store import Store
from tests.stores.redact.planted import ALNUM, _draw, _pem

FINDER = ValueFinder(RedactOptions(kinds=("secrets",), user=((), ())).rules())
PLACE = "[redacted:encoded-secret]"
VALUE = _draw("encoded", 24)
SECRETS = [
    f"DEBUG=1\nDB_PASSWORD={VALUE}\nPORT=5432\n",
    f"export API_KEY={VALUE}\nHOST=db.internal\n",
    f"host: db.internal\ngithub_token: {VALUE}\n",
    json.dumps({"name": "ci", "client_secret": VALUE}),
    _pem("RSA PRIVATE KEY", "encoded"),
]


def encoded(text: str, before: str = "") -> str:
    return base64.b64encode((before + text).encode()).decode()


@pytest.mark.parametrize("before", ["", "#", "# "])
@pytest.mark.parametrize("secret", SECRETS)
def test_an_encoded_file_of_settings_goes_as_a_whole(secret, before):
    text = f"$ base64 -w0 .env\n{encoded(secret, before)}\n$ "
    result = FINDER.text(text)
    assert result is not None
    assert result.text == f"$ base64 -w0 .env\n{PLACE}\n$ "


@pytest.mark.parametrize("secret", SECRETS)
def test_in_lines_as_the_command_writes_it_and_inside_json(secret):
    lines = base64.encodebytes((secret * 2).encode()).decode().strip()
    text = FINDER.text(f"it says:\n{lines}\n\nDone.")
    assert text is not None
    assert text.text == f"it says:\n{PLACE}\n\nDone."
    plain = json.dumps({"stdout": f"it says:\n{lines}\n"})
    (inside,) = FINDER.texts([plain], is_json=True)
    assert inside is not None
    assert json.loads(inside.text) == {"stdout": f"it says:\n{PLACE}\n"}


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=<YOUR_KEY>\nDB_PASSWORD=\nDEBUG=1 and so on and on\n",
        "The TOKEN count of a prompt is no SECRET, and a PASSWORD is none of its words.",
        "A text about nothing in particular, which is long enough to be looked into.",
    ],
)
def test_what_holds_no_secret_stays(text):
    assert FINDER.text(f"see {encoded(text)} there") is None


def test_bytes_that_are_no_text_stay():
    draw = random.Random(5)
    noise = base64.b64encode(draw.randbytes(3000)).decode()
    assert FINDER.text(noise[:2000] + encoded("TOKEN")[:6] + noise[2000:]) is None
    assert FINDER.text("".join(draw.choices(ALNUM, k=200))) is None


# ---- texts beside the picture of a PNG file ----------------------------------------------------

SECRET = f"DB_PASSWORD={VALUE}"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*chunks: bytes) -> bytes:
    size = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    picture = chunk(b"IDAT", zlib.compress(b"\0\x7f"))
    return b"".join((b"\x89PNG\r\n\x1a\n", size, *chunks, picture, chunk(b"IEND", b"")))


def texts(kind: str, text: str) -> bytes:
    raw = text.encode()
    packed = zlib.compress(raw)
    return {
        "tEXt": chunk(b"tEXt", b"Comment\0" + raw),
        "zTXt": chunk(b"zTXt", b"Comment\0\0" + packed),
        "iTXt": chunk(b"iTXt", b"Comment\0\0\0en\0Comment\0" + raw),
        "packed iTXt": chunk(b"iTXt", b"Comment\0\1\0en\0Comment\0" + packed),
    }[kind]


KINDS = ["tEXt", "zTXt", "iTXt", "packed iTXt"]


def cleaned(data: bytes, tmp_path) -> bytes:
    """The bytes of a picture, after redaction of a store with it."""
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    record = {
        "messages": [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": "It is grey."},
        ]
    }
    (tmp_path / "chat.jsonl").write_text(json.dumps(record) + "\n")
    adp.convert(tmp_path / "chat.jsonl", tmp_path / "store", keep_raw=True)
    redact(Store.open(str(tmp_path / "store")), str(tmp_path / "out"))
    store = Store.open(str(tmp_path / "out"))
    (blob,) = store.scan("media").collect().to_dicts()
    assert blob["media_id"] == digest(blob["data"])
    assert blob["size"] == len(blob["data"])
    raw = bytes(store.scan("raw").collect()["data"][0])
    kept = base64.b64encode(data) in raw
    assert kept == (blob["data"] == data)
    assert kept or f"base64,{PLACE}".encode() in raw
    return blob["data"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_a_png_file_is_redacted_and_the_picture_stays(kind, tmp_path):
    after = f"DEBUG=1\n{SECRET}\nPORT=1"
    new = cleaned(png(texts("tEXt", "grey"), texts(kind, after), texts(kind, "mine")), tmp_path)
    assert VALUE.encode() not in new
    plain = "iTXt" if "iTXt" in kind else "tEXt"
    words = after.replace(VALUE, "[redacted:password]")
    assert new == png(texts("tEXt", "grey"), texts(plain, words), texts(kind, "mine"))


def test_another_program_reads_the_new_file(tmp_path):
    image = pytest.importorskip("PIL.Image")
    new = cleaned(png(texts("packed iTXt", SECRET)), tmp_path)
    with image.open(io.BytesIO(new)) as picture:
        picture.load()
        assert picture.getpixel((0, 0)) == 0x7F
        assert picture.text == {"Comment": "DB_PASSWORD=[redacted:password]"}


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([texts(kind, "a grey point, and no PASSWORD") for kind in KINDS], id="clean"),
        pytest.param([chunk(b"zTXt", b"Comment\0\0no zlib"), chunk(b"iTXt", b"x")], id="damaged"),
        pytest.param([texts("zTXt", "grey " * (1 << 18) + SECRET)] * 2, id="a bomb"),
    ],
)
def test_a_png_file_without_a_secret_that_is_in_reach_stays(chunks, tmp_path):
    data = png(*chunks)
    assert cleaned(data, tmp_path) == data


def test_a_png_file_that_is_cut_is_read_to_its_end():
    data = png(texts("tEXt", SECRET))
    for end in range(8, len(data)):
        assert [text.text for text in texts_of_blob(data[:end], "image/png")] in ([], [SECRET])


def test_letters_of_a_data_url_that_mean_nothing_stay():
    noise = base64.b64encode(random.Random(3).randbytes(90)).decode()
    key = "AKIA" + "".join(random.Random(4).choices("ABCDEFGHIJKLMNOP234567", k=16))
    assert FINDER.text(f"data:image/jpeg;base64,/9j/{noise}/{key}/{noise}") is None
    url = f"data:text/plain;base64,{encoded(SECRETS[0])}"
    text = FINDER.text(f"see {url} there")
    assert text is not None
    assert text.text == f"see data:text/plain;base64,{PLACE} there"
