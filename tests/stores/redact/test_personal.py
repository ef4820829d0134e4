"""Personal data in the spellings that runs show it in, and the code that only looks like it."""

from __future__ import annotations

import random

import pytest

from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RedactOptions

FINDER = ValueFinder(RedactOptions(user=((), ())).rules())


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("j\xfcrgen.klein@firma-mail.de", "[redacted:email]"),
        ("ada@b\xfcro-klein.de, bye", "[redacted:email], bye"),
        ("?to=anna.smith%40acme-corp.io&x", "?to=[redacted:email]&x"),
        ("anna.smith&#64;acme-corp.io", "[redacted:email]"),
        ("mail ADA@CORP.IO.Then go", "mail [redacted:email].Then go"),
        ("de44500105175407324931", "[redacted:iban]"),
        ('{"card": "4539578763621486"}', '{"card": "[redacted:credit-card]"}'),
        ("paid with 3714-496353-98431", "paid with [redacted:credit-card]"),
        ("Tel.: 212.736.5000", "Tel.: [redacted:phone]"),
        ("/mnt/c/Users/annasmith/x", "/mnt/c/Users/[redacted:home-folder]/x"),
        ("cd /c/Users/annasmith", "cd /c/Users/[redacted:home-folder]"),
        ("/nfs/home/annasmith/x", "/nfs/home/[redacted:home-folder]/x"),
        ("/data2/home/annasmith/x", "/data2/home/[redacted:home-folder]/x"),
        ("\\\\wsl$\\Ubuntu\\home\\anna\\x", "\\\\wsl$\\Ubuntu\\home\\[redacted:home-folder]\\x"),
        ('"/Users/Anna Smith/x"', '"/Users/[redacted:home-folder]/x"'),
        ("'C:\\Users\\Anna Smith'", "'C:\\Users\\[redacted:home-folder]'"),
        ("see /Users/anna Then go", "see /Users/[redacted:home-folder] Then go"),
        ("annasmith@laptop:~$ ls", "[redacted:home-folder]@laptop:~$ ls"),
        ("(base) anna@box:/srv/x$ ls", "(base) [redacted:home-folder]@box:/srv/x$ ls"),
        ("\\nanna@Annas-Air ~ % ls", "\\n[redacted:home-folder]@Annas-Air ~ % ls"),
    ],
)
def test_spellings(text, clean):
    cleaned = FINDER.text(text)
    assert (cleaned.text if cleaned else text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "attn = q@k.transpose(-2,-1) + a@b.mean(0) + (q@k.mT) - W@x.sum",
        "q@k.to(x) a@b.id[0] x@y.to.item()",
        "pkg@latest.tgz name@v1.0.rc react@18.2.0 getty@tty1.service x@y.zz",
        "GET /home/about HTTP/1.1",
        "POST  /home/ada/checkout",
        "<a href='/home/settings'> fetch('/Users/123') url(/home/assets/x.png)",
        "/home/index.html /home/dashboard?x to='/home/profile'",
        "/home/swebench /home/oai/x /home/azureuser /home/kali /home/jupyter /home/node/x",
        "/home/vscode /home/coder /home/agent /home/sandbox /home/openhands /home/codespace",
        "/home/circleci /home/gitpod /home/app /home/deploy /home/dev1 /home/ubuntu2",
        "version 708.517.4951 and 212.736.5000",
        "root@3f2a9b:/# ubuntu@ip-10-0-0-1:~$ swebench@host:/repo$ git@host:~/x$ user@box:~$",
        "ssh ubuntu@build.acme-corp.io",
        "a1@b:c x@y: $5 {user}@{host}:~$ @dataclass: ~x $",
    ],
)
def test_what_only_looks_like_one(text):
    cleaned = FINDER.text(text)
    assert cleaned is None, cleaned


def test_long_numbers_are_no_cards():
    draw = random.Random(5)
    numbers = [str(draw.randrange(4 * 10**15, 5 * 10**15)) for _ in range(500)]
    assert not any(FINDER.texts([f"id={number}, next" for number in numbers]))
