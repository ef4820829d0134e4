"""Keys that look like those of the providers, drawn anew in each process from a seed.

None of them stands in this file, so that whoever hosts it does not find any.
"""

from __future__ import annotations

import base64
import json
import random
import string

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"


def _draw(seed: str, size: int, letters: str = ALNUM) -> str:
    return "".join(random.Random(seed).choices(letters, k=size))


def _uuid(seed: str) -> str:
    return "-".join(_draw(seed + str(size), size, HEX) for size in (8, 4, 4, 4, 12))


def _base64url(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _pem(label: str, seed: str) -> str:
    lines = [_draw(f"{seed}{n}", 64, ALNUM + "+/") for n in range(6)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def plain(seed: str = "1") -> list[tuple[str, str]]:
    """Kind and value of many keys; each value is recognised without words around it."""

    def d(size: int, letters: str = ALNUM) -> str:
        d.count += 1  # type: ignore[attr-defined]
        return _draw(f"{seed}/{d.count}", size, letters)  # type: ignore[attr-defined]

    d.count = 0  # type: ignore[attr-defined]
    word = ALNUM + "-_"
    return [
        ("aws-access-key-id", "AK" + "IA" + d(16, UPPER)),
        ("aws-access-key-id", "AS" + "IA" + d(16, UPPER)),
        ("google-api-key", "AI" + "za" + d(35)),
        ("google-oauth-secret", "GOC" + "SPX-" + d(28)),
        ("github-token", "gh" + "p_" + d(36)),
        ("github-token", "gh" + "o_" + d(36)),
        ("github-token", "gh" + "s_" + d(36)),
        ("github-token", "github" + "_pat_" + d(22) + "_" + d(59)),
        ("gitlab-token", "gl" + "pat-" + d(20)),
        ("huggingface-token", "h" + "f_" + d(34)),
        ("openai-key", "sk" + "-proj-" + d(74, word) + "T3Blbk" + "FJ" + d(74, word)),
        ("openai-key", "sk" + "-" + d(20) + "T3Blbk" + "FJ" + d(20)),
        ("anthropic-key", "sk" + "-ant-api03-" + d(93, word) + "AA"),
        ("openrouter-key", "sk" + "-or-v1-" + d(64, HEX)),
        ("groq-key", "gs" + "k_" + d(52)),
        ("xai-key", "xa" + "i-" + d(80)),
        ("perplexity-key", "pp" + "lx-" + d(48)),
        ("replicate-token", "r" + "8_" + d(37)),
        (
            "slack-token",
            "xo" + "xb-" + d(12, "0123456789") + "-" + d(13, "0123456789") + "-" + d(24),
        ),
        (
            "slack-token",
            "xa" + "pp-1-" + d(11, UPPER) + "-" + d(13, "0123456789") + "-" + d(64, HEX),
        ),
        ("discord-token", "M" + d(25) + "." + d(6) + "." + d(38)),
        ("telegram-token", d(10, "123456789") + ":A" + "A" + d(33)),
        ("stripe-key", "sk" + "_live_" + d(24)),
        ("stripe-key", "rk" + "_live_" + d(24)),
        ("twilio-key", "S" + "K" + d(32, HEX)),
        ("sendgrid-key", "S" + "G." + d(22, word) + "." + d(43, word)),
        ("mailgun-key", "ke" + "y-" + d(32, HEX)),
        ("npm-token", "np" + "m_" + d(36)),
        ("pypi-token", "py" + "pi-AgE" + "IcHlwaS5vcmc" + d(120, word)),
        ("docker-token", "dckr" + "_pat_" + d(27)),
        ("digitalocean-token", "dop" + "_v1_" + d(64, HEX)),
        ("databricks-token", "da" + "pi" + d(32, HEX)),
        ("shopify-token", "shp" + "at_" + d(32, HEX)),
        ("square-token", "sq0" + "atp-" + d(22)),
        ("postman-key", "PM" + "AK-" + d(24, HEX) + "-" + d(34, HEX)),
        ("new-relic-key", "NR" + "AK-" + d(27, string.ascii_uppercase + string.digits)),
        ("grafana-token", "gl" + "sa_" + d(32) + "_" + d(8, HEX)),
        ("sentry-token", "sntr" + "yu_" + d(64, HEX)),
        ("linear-key", "lin" + "_api_" + d(40)),
        ("notion-token", "nt" + "n_" + d(46)),
        ("atlassian-token", "ATA" + "TT3" + d(180, word) + "=" + d(8, "0123456789ABCDEF")),
        ("vault-token", "hv" + "s." + d(95, word)),
        ("tavily-key", "tv" + "ly-dev-" + d(32)),
        ("heroku-key", "HR" + "KU-AA" + d(58, word)),
        ("airtable-token", "pa" + "t" + d(14) + "." + d(64, HEX)),
        ("private-key", _pem("RSA PRIVATE" + " KEY", seed + "rsa")),
        ("private-key", _pem("OPENSSH PRIVATE" + " KEY", seed + "ssh")),
        ("private-key", _pem("PGP PRIVATE" + " KEY BLOCK", seed + "pgp")),
        ("jwt", ".".join((_base64url({"alg": "HS256"}), _base64url({"sub": d(8)}), d(43, word)))),
    ]


def in_context(seed: str = "1") -> list[tuple[str, str, str]]:
    """Kind, value and a text around it, for keys that go by the words around them."""

    def d(number: int, size: int, letters: str = ALNUM) -> str:
        return _draw(f"{seed}/context/{number}", size, letters)

    aws = d(1, 40, ALNUM + "+/")
    return [
        ("aws-secret-key", aws, f"export AWS_SECRET_ACCESS_KEY={aws}"),
        ("azure-storage-key", d(2, 86) + "==", f"AccountName=a;AccountKey={d(2, 86)}==;Suffix=b"),
        ("azure-sas", d(3, 43) + "%3D",
         f"https://a.blob.core.windows.net/c?sv=2&sig={d(3, 43)}%3D"),
        ("slack-webhook", f"T{d(4, 8, UPPER)}/B{d(5, 8, UPPER)}/{d(6, 24)}",
         f"https://hooks.slack.com/services/T{d(4, 8, UPPER)}/B{d(5, 8, UPPER)}/{d(6, 24)}"),
        ("discord-webhook", f"{d(7, 18, '123456789')}/{d(8, 68)}",
         f"https://discord.com/api/webhooks/{d(7, 18, '123456789')}/{d(8, 68)}"),
        ("wandb-key", d(9, 40, HEX), f"WANDB_API_KEY={d(9, 40, HEX)}"),
        ("heroku-key", _uuid(seed), f"HEROKU_API_KEY={_uuid(seed)}"),
        ("url-password", d(10, 14), f"postgres://app:{d(10, 14)}@db.internal:5432/main"),
        ("authorization", "Z9" + d(11, 30), f"Authorization: Bearer Z9{d(11, 30)}"),
        ("password", "k7!" + d(12, 10), f"DB_PASSWORD=k7!{d(12, 10)}"),
        ("assigned-key", "q4" + d(13, 30), f'"api_key": "q4{d(13, 30)}"'),
    ]  # fmt: skip
