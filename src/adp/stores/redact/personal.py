"""Rules for personal data. Checksums and number plans are those of stdnum and phonenumbers."""

from __future__ import annotations

import ipaddress
import re

from adp.stores.redact.email import EMAIL
from adp.stores.redact.home_paths import HOMES
from adp.stores.redact.rules import Rule

_PHONE = re.compile(
    r"(?i)phone|\btel|\bcall|\bfax|mobile|\bcell|contact|\bt:|whatsapp|\bsms|\btext"
)
"""Words beside a phone number."""


def _phone(text: str, start: int, end: int) -> bool:
    """Whether a number is one that could be dialled; those kept for fiction (555-01xx) are none."""
    import phonenumbers

    value = text[start:end]
    if re.fullmatch(r"\d{3}\.\d{3}\.\d{4}", value) and not _PHONE.search(
        text, max(0, start - 40), start
    ):
        return False  # a version, or a number of parts
    if re.search(r"555[ .-]?01\d\d|(\d)\1{6}|1234567", re.sub(r"[()]", "", value)):
        return False
    try:
        number = phonenumbers.parse(value, None if value.startswith("+") else "US")
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_valid_number(number))


_TEST_CARDS = re.compile(
    r"^(?:4242|4111111111111111|5555555555554444|378282246310005|4000)|(\d)\1{7}"
)


_CARD = re.compile(
    r"(?i)card|visa|amex|american express|kredit|credit|\bcc|\bpan\b|\bpan[\"'=:_]|cvv|payment"
)
"""Words beside the number of a card."""


def _card(text: str, start: int, end: int) -> bool:
    """Whether a number is one of a card: one in ten numbers would pass the check digit alone."""
    from stdnum import luhn

    value = text[start:end]
    digits = re.sub(r"\D", "", value)
    if value == digits and not _CARD.search(text, max(0, start - 40), min(len(text), end + 12)):
        return False
    return (
        _ISSUER.match(digits) is not None
        and luhn.is_valid(digits)
        and _TEST_CARDS.search(digits) is None
        and len(set(digits)) > 3
    )


_ISSUER = re.compile(
    r"(?:4\d{15}|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"
    r"|(?:6011|64[4-9]\d|65\d\d|352[89]|35[3-8]\d)\d{12}|3[47]\d{13})$"
)
"""Visa, Mastercard, Discover, JCB; American Express."""


def _iban(text: str, start: int, end: int) -> bool:
    from stdnum import iban

    value = re.sub(r"\s", "", text[start:end])
    return bool(iban.is_valid(value, check_country=False))


def _ssn(text: str, start: int, end: int) -> bool:
    from stdnum.us import ssn

    value = text[start:end]
    return bool(ssn.is_valid(value)) and value not in ("123-45-6789", "111-11-1111")


def _address(text: str, start: int, end: int) -> bool:
    """Whether an address of the Internet can belong to a person: not private, not reserved."""
    value = text[start:end]
    try:
        ip_address = ipaddress.ip_address(value)
    except ValueError:
        return False
    if re.search(r"(?i)version|release|\bv\.?\s?$|[=><~^]\s?$", text[max(0, start - 20) : start]):
        return False
    return ip_address.is_global and not ip_address.is_multicast and value not in _RESOLVERS


_RESOLVERS = frozenset(
    {"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "1.2.3.4", "4.3.2.1", "5.6.7.8",
     "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "208.67.222.222", "208.67.220.220"}
)  # fmt: skip

CHECKED = frozenset({"phone", "credit-card", "iban", "us-ssn"})
"""Kinds that the packages of the extra ``redact`` check."""

PERSONAL = (
    EMAIL,
    Rule("phone", "personal", "Phone number with a country code, or as written in North America",
         r"(?:(?<![\w.+/=-])|(?<=\\[nrtfb]))(?P<v>\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}"
         r"(?:[ .-]?\d{2,4}){2,4}|(?:\+?1[ .-])?\([2-9]\d\d\) ?[2-9]\d\d[ .-]\d{4}"
         r"|[2-9]\d\d[.-][2-9]\d\d[.-]\d{4})(?![\w-])",
         gate=r"\+[1-9][0-9 .()-]{6}|\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}"
         r"|[2-9][0-9]{2}[.-][2-9][0-9]{2}[.-][0-9]{4}",
         check=_phone, source="https://www.itu.int/rec/T-REC-E.164"),
    Rule("credit-card", "personal", "Number of a payment card (Luhn)",
         r"(?:(?<![\w.+/-])|(?<=\\[nrtfb]))(?P<v>(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|6[45]\d\d|35\d\d)"
         r"([ -]?)\d{4}\2\d{4}\2\d{4}|3[47]\d\d([ -]?)\d{6}\3\d{5})(?![\w.-])",
         gate=r"[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}"
         r"|3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}",
         check=_card, source="https://www.iso.org/standard/70484.html"),
    Rule("iban", "personal", "Bank account (IBAN, mod 97)",
         r"(?:(?<![0-9A-Za-z])|(?<=\\[nrtfb]))(?P<v>[A-Z]{2}\d\d(?: ?[0-9A-Z]{4}){2,7}"
         r"(?: ?[0-9A-Z]{1,4})?|[a-z]{2}\d\d(?: ?[0-9a-z]{4}){2,7}(?: ?[0-9a-z]{1,4})?)"
         r"(?![0-9A-Za-z])",
         gate=r"[a-z]{2}[0-9]{2} ?[0-9a-z]{4} ?[0-9]{4} ?[0-9]{2}"
         r"|[A-Z]{2}[0-9]{2} ?[0-9A-Z]{4} ?[0-9A-Z]{4} ?[0-9A-Z]{3}", check=_iban,
         source="https://www.iso.org/standard/81090.html"),
    Rule("us-ssn", "personal", "US social security number",
         r"(?:(?<![\w.-])|(?<=\\[nrtfb]))(?P<v>\d{3}-\d{2}-\d{4})(?![\w-])",
         gate=r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
         check=_ssn, source="https://www.ssa.gov/employer/randomization.html"),
    Rule("ip-address", "personal", "Public address of the Internet, IPv4 or IPv6",
         r"(?:(?<![\w.:-])|(?<=\\[nrtfb]))(?P<v>(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
         r"|(?:[0-9a-fA-F]{1,4}:){2,6}(?::[0-9a-fA-F]{1,4}){1,5})(?![\w:-]|\.\d)",
         gate=r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
         r"|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:[0-9a-fA-F:]{3}",
         check=_address, source="https://www.iana.org/assignments/iana-ipv4-special-registry/"),
    *HOMES,
)  # fmt: skip
