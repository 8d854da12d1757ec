"""The rules of `tlsAuthPrincipalMappingRules`: those of PIP-485 and of KIP-371, and what is none."""

from __future__ import annotations

import pytest

from interpulse.authentication.principal_mapping import PrincipalMapping, UnusableRules

DN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
SPIFFE = "spiffe://acme.com/ns/Payments/sa/checkout"
KAFKA = ",".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
        "DEFAULT",
    ]
)
PIP = r"RULE:^spiffe://acme\.com/ns/([^/]+)/sa/([^/]+)$/$1__$2/L,DEFAULT"
ESCAPED = r"RULE:^spiffe:\/\/acme\.com\/ns\/([^\/]+)\/sa\/([^\/]+)$/$1__$2/L"
LAST = "RULE:^(.*)$/$1/"


@pytest.mark.parametrize(
    ("rules", "name", "role"),
    [
        pytest.param("", DN, DN, id="no rules"),
        pytest.param("DEFAULT", DN, DN, id="DEFAULT"),
        pytest.param(PIP, SPIFFE, "payments__checkout", id="PIP-485, example"),
        pytest.param(ESCAPED, SPIFFE, "payments__checkout", id="slashes escaped as in Kafka"),
        pytest.param(KAFKA, DN, "Duke", id="KIP-371, rule 1"),
        pytest.param(KAFKA, "CN=duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme", id="KIP-371, rule 2"),
        pytest.param(KAFKA, "cn=Duke,ou=JavaSoft,o=Sun", "duke", id="KIP-371, rule 3"),
        pytest.param(KAFKA, "OU=JavaSoft,O=Sun", "OU=JavaSoft,O=Sun", id="KIP-371, rule 4"),
        pytest.param("RULE:^CN=(.+?),.*$/$1/U", DN, "DUKE", id="upper case"),
        pytest.param("RULE:CN=(Duke|Sun),OU=.*/$1/ , DEFAULT", DN, "Duke", id="spaces around the comma"),
        pytest.param("RULE:Duke/admin/", DN, None, id="the whole name has to match"),
        pytest.param("RULE:.*/one/,RULE:.*/two/", DN, "one", id="the first rule decides"),
        pytest.param("RULE:^CN=Nobody,.*$/x/", DN, None, id="no rule matches"),
        pytest.param("RULE:^CN=Duke(x?),.*$/$1/,DEFAULT", DN, None, id="an empty role is none"),
        pytest.param(LAST, "admin\n", None, id="a line end is part of the name"),
        pytest.param("RULE:(a)|b/x$1/", "b", "x", id="a group without a match"),
        pytest.param(r"RULE:(.+)/\$1\/$1\\/", "a", "$1/a\\", id="escapes in the replacement"),
        pytest.param(r"RULE:(.{1,2}),(.+)/$2,$1/", "ab,c", "c,ab", id="commas inside a rule"),
    ],
)
def test_rules_when_a_name_is_mapped_then_the_first_that_matches_makes_the_role(
    rules: str, name: str, role: str | None
) -> None:
    assert PrincipalMapping(rules).role(name) == role


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ("default", "'default' is neither DEFAULT nor RULE:pattern/replacement/"),
        ("RULE:abc", "'RULE:abc' is neither"),
        ("RULE:a/b", "neither"),
        ("RULE:a/b/X", "neither"),
        ("RULE:/b/", "neither"),
        ("DEFAULT,", "'DEFAULT,' is neither"),
        ("DEFAULT DEFAULT", "neither"),
        ("RULE:a/b/LU", "neither"),
        ("RULE:(/b/", r"the pattern '\(' is none of RE2: .*"),
        ("RULE:(?=a)/b/", r"the pattern '\(\?=a\)' is none of RE2"),
        ("RULE:a/$1/", r"names none of the 0 groups"),
        ("RULE:(a)/$2/", r"'\$2' in the replacement names none of the 1 groups"),
        ("RULE:(a)/$x/", r"a dollar sign is written \\\$"),
    ],
)
def test_rules_when_invalid_then_refused(rules: str, why: str) -> None:
    with pytest.raises(UnusableRules, match=why):
        PrincipalMapping(rules)
