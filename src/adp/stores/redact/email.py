"""The rule for e-mail addresses."""

from __future__ import annotations

import re

from adp.stores.redact.rules import Rule

_COUNTRIES = """
    ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs
    bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee
    eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm
    hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb
    lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz
    na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs
    ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl
    tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw
"""
"""Top-level domains of countries (ISO 3166 and a few more)."""

_GENERIC = """
    academy aero agency app archi art asia associates bank bayern berlin bio biz blog brussels
    build capital care careers cat center chat church city claims clinic cloud club codes coffee
    college com community company computer consulting contact coop cricket dental design dev
    digital direct doctor earth eco edu education email energy engineer engineering enterprises
    events expert family farm film finance fit foundation fun fund fyi gallery games global gmbh
    gov green group guide guru hamburg health help hosting house icu immo inc info ink institute
    int international investments jobs koeln land law lawyer legal life limited link live llc
    lol london love ltd management marketing media melbourne mil mobi money moscow museum music
    net network news ngo ninja nrw nyc one ong online org page paris partners photo photography
    plus post press pro productions pub quebec realty rocks run sale school science scot
    security services shop site social software solutions space store studio support swiss
    sydney systems team tech technology tel today tokyo tools top town training travel
    university uno ventures vet video vip wales wang website wien wiki win work works world wtf
    xyz zone
"""
"""Generic top-level domains in which people have addresses: the older ones, and of the newer ones
those with many names. What ends otherwise is code, a package or a unit of systemd."""

_TOP = "|".join(sorted(f"{_COUNTRIES} {_GENERIC}".split(), key=len, reverse=True))

_RESERVED = re.compile(
    r"(?i)@(?:self\.|[\w.-]+\.)?(?:example\.(?:com|org|net|edu)|[\w-]+\.(?:example|test|invalid|localhost|local)"
    r"|(?:test|domain|email|mail|company|yourdomain|foo|bar|abc|xyz)\.(?:com|org|net)"
    r"|users\.noreply\.github\.com|noreply\.github\.com"
    r"|[\w.-]+\.(?:rsa\.pub|png|jpe?g|gif|svg|webp|css|js|py|ts|md|txt|json|html?))$"
)
_ROLE = re.compile(
    r"(?i)^(?:no-?_?reply|do-?not-?reply|git|user(?:name)?|you|your[._-]?(?:name|e?mail)?|name|me|someone"
    r"|e?mail|test\w{0,8}|example|foo|bar|info|support|admin|contact|hello|help|sales|security"
    r"|ubuntu|ec2-user|azureuser|vagrant|runner|john\.?doe|jane\.?doe|postmaster|webmaster|root|mailer-daemon|notifications?|bot)@"
)

_CALL = re.compile(r"[(\[]|(?:\.[A-Za-z_]\w{0,40}){1,4}\(")
"""What follows the product of two matrices, as in ``q@k.to(x)``."""


def _email(text: str, start: int, end: int) -> bool:
    value = text[start:end].replace("%40", "@").replace("&#64;", "@")
    if text[max(0, start - 2) : start] == "//":
        return False  # the user of an address, as in ssh://me@host.org
    top = value.rsplit(".", 1)[1]
    if not (top.islower() or top.isupper() or (len(top) > 2 and top.istitle())):
        return False  # an attribute, as in (q@k.mT)
    if _CALL.match(text, end):
        return False
    return _RESERVED.search(value) is None and _ROLE.match(value) is None


_AT = "(?:@|%40|&#64;)"

EMAIL = Rule(
    "email", "personal", "E-mail address; not of example.com and the like, not noreply",
    r"(?:(?<![\w.%+\\-])|(?<=\\[nrtfb]))(?P<v>[\w.%+-]{1,64}"
    rf"{_AT}(?:[^\W_](?:[\w-]{{0,62}})\.){{1,8}}(?i:{_TOP}))(?![\w-])",
    ("@", "%40", "&#64;"), gate=rf"{_AT}[^\s@]{{1,64}}\.[A-Za-z]{{2}}", check=_email,
    source="https://www.rfc-editor.org/rfc/rfc5322#section-3.4.1", back=64,
)  # fmt: skip
