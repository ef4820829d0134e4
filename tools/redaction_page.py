"""The page of secrets and personal data, from the rules."""

from __future__ import annotations

from adp.stores.redact.options import RULES, all_kinds
from adp.stores.redact.rules import SET_VERSION
from tools.markdown import NOTE, table

TITLES = {"secrets": "Secrets", "personal": "Personal data", "own": "Yourself"}

HEAD = """\
`adp redact STORE --dry-run` says what secrets and personal data a store holds, and where;
`adp redact STORE -o NEW` writes a new store in which placeholders such as
`[redacted:github-token]` stand for them. The old store stays as it is: remove it yourself.

## Where

Every text of every table is searched: words, reasoning, contents, arguments, tools, results, pages
and addresses, extra keys, tags, notes, tasks with their references, links, pairs, addresses of
media and media that are text, raw records, excerpts of rejected ones, names of files, all ids, and
the manifest. JSON text is searched as it reads without its escapes, JSON inside JSON too, so
`hf\\u005f...` is found. It stays JSON, and keeps all other characters. A number becomes a string.
In the keys of an object, different values get numbers, so that different keys stay different.

- Ids change alike in all tables, and different ones stay different: `[redacted:email-2]`, or the
  `#2` that a conversion would have given.
- Parts of a step, and calls that were parsed from its text, are named by spans of characters; they
  move with the words. What an export writes is what a conversion of a redacted source would give.
- Media with another address or other bytes get another id: the hash of what they are now.
- The lineage of the new store says what was looked for and how much was replaced by kind. It holds
  no value, nor your name.
- A store that was redacted holds nothing that the same options would find.

Not searched: what pictures and sounds show, their metadata but for the texts of PNG files, base64
in texts but for what is said below, and token ids. Hashes of the original records stay
(`source_hash`, `fingerprint`): who knows all of a record but a short value, such as a phone
number, can try which one fits. A value that is spread over several parts or results is not seen,
nor is one in an encoding other than JSON's and `%` before it, letters of full width, or a
password of letters alone in prose.

Colours of terminals, signs without a width and soft hyphens inside a value do not hide it. A key
with a form of its own is found over a line break too, where the next line goes on with digits or
mixed letters. A seed phrase is found behind a word that says what it is, without a list of words.

Base64 of 40 characters and more is looked into where it spells a word such as `PASSWORD`, `TOKEN`
or `_KEY=`, in large or small letters: an encoded `.env` file or private key goes as a whole, in a
`data:` URL too. The texts beside the picture of a PNG file (`tEXt`, `zTXt`, `iTXt`) are searched
as other texts, of the first 16 compressed ones the first MiB; the picture stays as it is. A PNG
file that stands in a text as base64, such as in a raw record, goes as a whole when such a text
holds a secret.

## What

`--kinds` takes kinds and groups: `--kinds secrets`, `--kinds secrets,email`, `--kinds all`. With a
minus sign one is left out: `--kinds=-phone` looks for all that is on by default but phone numbers.

| group | its kinds |
|---|---|
| `secrets` | keys, tokens and passwords |
| `personal` | what tells who somebody is: addresses, numbers of phones, cards and accounts |
| `own` | your own home folder and user name, taken from the account that runs the command |
| `given` | your own rules, from `--rules`; always looked for unless `--kinds=-given` |
| `all` | all of these, those that are off by default too |

On by default are all secrets, yourself, and the personal data that is rarely found by mistake. In
300 MB of the sources of Python packages and of files of a system, the rules for private keys and
those that go by the words around found 16 places: values of examples and tests, and the keys of a
browser.

In sample traces of public data sets and of coding agents (963 trajectories and 497 records that
could not be read, with the raw records) all secrets and all personal data were looked for, and each
of the 106 different values was judged in its surroundings. An address, number or password of a
made-up person, or of an office, counts as right. The numbers in brackets are places, 2,275 in all:

| kind | different values | right | wrong | cannot tell |
|---|---|---|---|---|
| `email` | 47 (868) | 45 (866) | 0 | 2 (2) |
| `home-folder` | 19 (938) | 13 (806) | 4 (14) | 2 (118) |
| `phone` | 12 (173) | 12 (173) | 0 | 0 |
| `assigned-key` | 8 (55) | 8 (55) | 0 | 0 |
| `password` | 6 (20) | 6 (20) | 0 | 0 |
| `ip-address` (off) | 14 (221) | 9 (37) | 4 (182) | 1 (2) |
| all others | 0 | 0 | 0 | 0 |

So of the 92 values of what is on by default 4 were wrong (14 of 2,054 places): three files and
folders right under `/home`, and a stand-in for a name. `ip-address` is off, because it took pieces
of drawings, the number of an enzyme and an address written backwards for addresses, and because
those in logs are mostly of servers. The passwords and tokens were those of made-up accounts in
tests of tools. `python -m tools.redaction_tally FOLDER --values FILE` makes such a tally, with the
values and their surroundings in a file of your own.

What documentation shows in the place of a value is no finding: `AKIA...EXAMPLE`, `<YOUR_KEY>`,
`sk-xxxx`, addresses of `example.com`, numbers with 555-01, homes such as `/home/user`.

`own-name` replaces your user name wherever it stands as a word. If it is a word of the language,
leave it out: `--kinds=-own-name`.

`--rules FILE` adds rules of your own, in YAML or JSON:

```yaml
- name: ticket
  what: Number of a ticket of ours
  regex: '\\bOPS-\\d{4,6}\\b'
```

The expressions are those of the [Rust crate regex](https://docs.rs/regex/latest/regex/#syntax): no
look-around, no back references, and linear time on any text. Quotes inside a match stay.

A secret that was published once is known. Withdraw the key at its provider too.
"""


def redaction_page() -> str:
    """The page."""
    rows = all_kinds()
    shapes = sum(rule.group == "secrets" for rule in RULES)
    sources: dict[str, list[str]] = {}
    for rule in RULES:
        if rule.source and rule.source not in sources.setdefault(rule.kind, []):
            sources[rule.kind].append(rule.source)
    lines = [
        *("# Redaction", "", NOTE, ""),
        *HEAD.splitlines(),
        "",
        "## Kinds",
        "",
        f"Version {SET_VERSION} of the rules: {len(rows)} kinds, {shapes} rules for secrets.",
        "[ADR 9](adr/0009-redaction-rules.md) says why they are our own.",
        "",
    ]
    for group, title in TITLES.items():
        entries = [
            (f"`{kind}`", "yes" if default else "no", what, _links(sources.get(kind, [])))
            for kind, native, what, default in rows
            if native == group
        ]
        lines += [f"### {title}", ""]
        lines += [*table(("kind", "default", "what it finds", "format"), entries), ""]
    return "\n".join(lines).rstrip() + "\n"


def _links(addresses: list[str]) -> str:
    return ", ".join(f"[{_host(address)}]({address})" for address in addresses)


def _host(address: str) -> str:
    return address.split("/")[2].removeprefix("www.")
