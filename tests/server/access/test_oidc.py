"""JWTs of an issuer beside the tokens of the token file: which count, at each door, while the issuer's keys change.

tests/clients/test_oidc_provider.py has a provider of others.
"""

import asyncio
import base64
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from epsparql.client import ApiError, Client, Closed
from server.settings import Settings, SettingsError, settings_from
from server.tokens import issuer_documents
from server.tokens.claim_rules import list_values, load_claim_rules
from server.tokens.issuer_keys import IssuerKeys, IssuerSilent
from server.tokens.jwt_verification import JwtVerifier, TokenRefused
from server.tokens.scopes import EXPECTED_SCOPES
from tests.server.access.jwt_issuer import AUDIENCE, DISCOVERY, Issuer, Key, issuing
from tests.server.conftest import DEADLINE_S, event, refusal_of, serving, values
from tests.server.operations.test_security import coded, digest
from tests.server.routes.test_streams import assert_problem
from tests.server.subscriptions.test_websockets import closing, dial

RULES = 'groups=operators  read:q ingest:a  # a shift\n"groups=Plant admins" admin\npermissions\nrealm_access.roles=reader read:*\n'


@pytest.fixture(scope="module")
def keys() -> dict[str, Key]:
    names = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "PS384")
    return {"other": Key("ES256"), "short": Key("short", "RS256", bits=1024)} | {name: Key(name, name) for name in names}


@pytest.fixture(scope="module")
def issuer(keys: dict[str, Key]) -> Iterator[Issuer]:
    with issuing(*(keys[name] for name in ("ES256", "ES384", "ES512", "EdDSA", "RS256", "PS384", "short"))) as found:
        yield found


def settings_of(directory: Path, issuer: Issuer, **chosen: Any) -> dict[str, Any]:
    """Return settings for the issuer, with its rules written to the directory."""
    directory.mkdir(exist_ok=True)
    (directory / "rules").write_text(RULES)
    return {"oidc_issuer": issuer.url, "oidc_audience": (AUDIENCE, "other"), "oidc_scopes": directory / "rules"} | chosen


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[str]:
    """A server with tokens of both kinds, and the query q."""
    directory = tmp_path_factory.mktemp("oidc")
    (directory / "tokens").write_text(f"{digest('root')} admin\n{digest('a.b.c')} read:q\n")
    with serving(directory / "data", token_file=directory / "tokens", **settings_of(directory, issuer)) as url:
        Client(url, "root").register("q", values("a"))
        yield url


def authorization(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# ---------------------------------------------------------------- doors
def test_every_door_takes_a_jwt(guarded: str, issuer: Issuer) -> None:
    client = Client(guarded, issuer.token(groups=["operators"]))
    assert client.send("a", event(1)).accepted == 1
    (solution,) = client.solutions("q", wait_s=DEADLINE_S)
    with client.follow("q") as subscription:
        assert subscription.next(DEADLINE_S) == solution
    with client.feed("a") as feed:
        feed.send(event(2))
        assert feed.flush()
    with dial(guarded, "/queries/q/feed", "epsparql.v1+json", coded(issuer.token(groups=["operators"]))) as connection:
        assert connection.recv(DEADLINE_S), "a refusal would close it"
    headers = authorization(issuer.token(groups=["operators"])) | {"Accept": "text/event-stream"}
    with httpx.stream("GET", f"{guarded}/queries/q/events", headers=headers) as events:
        assert (events.status_code, events.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    for refused in (lambda: client.send("b", event(1)), lambda: client.query("r"), lambda: client.queries() and client.register("r", values("a"))):
        with pytest.raises(ApiError, match="the file of --oidc-scopes") as fault:
            refused()
        assert fault.value.status == 403
    assert Client(guarded, "root").query("q")["name"] == "q"
    assert Client(guarded, "a.b.c").query("q")["name"] == "q", "a token of the file may look like a JWT"


def test_every_door_refuses_one_that_does_not_count(guarded: str, issuer: Issuer) -> None:
    expired = issuer.token(groups=["operators"], exp=int(time.time()) - 60)
    with pytest.raises(ApiError, match="it has expired"):
        Client(guarded, expired).send("a", event(1))
    with Client(guarded, expired).follow("q") as subscription, pytest.raises(Closed, match="it has expired") as closed:
        subscription.next(DEADLINE_S)
    assert closed.value.code == 4001
    with dial(guarded, "/streams/a/feed", coded(expired)) as connection:
        assert closing(connection)[0] == 4001
    for path in ("/queries/q/events", "/streams/a/events", "/metrics", "/queries"):
        answer = httpx.get(f"{guarded}{path}", headers=authorization(expired))
        assert_problem(answer, 401, "invalid-token")
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert f"; {issuer.url} gives tokens, too" in str(assert_problem(httpx.get(f"{guarded}/queries"), 401, "no-token")["detail"])


def test_the_audit_names_the_subject(tmp_path: Path, issuer: Issuer) -> None:
    with serving(tmp_path / "data", **settings_of(tmp_path, issuer)) as url:
        Client(url, issuer.token(groups="Plant admins", sub="ada\nforged")).register("q", values("a"))
        assert_problem(httpx.get(f"{url}/queries"), 401, "no-token")
    assert '"who": "subject ada\ufffdforged"' in (tmp_path / "data" / "audit.ndjson").read_text()


# ---------------------------------------------------------------- tokens
def forge(issuer: Issuer, header: dict[str, Any], signature: str = "") -> str:
    """Return a token with a good payload, any header, and a signature of someone's own."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, issuer.claims()))
    return f"{'.'.join(parts)}.{signature}"


def with_payload_of(token: str, other: str) -> str:
    head, _, signature = token.split(".")
    return f"{head}.{other.split('.')[1]}.{signature}"


def hmac_with_public_key(issuer: Issuer, keys: dict[str, Key]) -> str:
    """Return a token whose secret is the issuer's public key, which everyone knows."""
    unsigned = forge(issuer, {"alg": "HS256", "kid": "RS256"})[:-1]
    secret = json.dumps(keys["RS256"].public).encode()
    signature = hmac.digest(secret, unsigned.encode(), "sha256")
    return f"{unsigned}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


BAD: dict[str, tuple[Callable[[Issuer, dict[str, Key]], str], str]] = {
    "no algorithm": (lambda i, _: forge(i, {"alg": "none", "kid": "ES256"}), "algorithm is 'none'; it has to be one of RS256"),
    "no algorithm in another spelling": (lambda i, _: forge(i, {"alg": "nOnE", "kid": "ES256"}), "algorithm is 'nOnE'"),
    "an algorithm that is a list": (lambda i, _: forge(i, {"alg": ["ES256"], "kid": "ES256"}), "algorithm is"),
    "a public key as a secret": (hmac_with_public_key, "algorithm is 'HS256'"),
    "another key under its id": (lambda i, k: k["other"].sign(i.claims()), "its signature is not that of"),
    "a key for another algorithm": (lambda i, k: k["ES256"].sign(i.claims(), kid="RS256"), "the token's key 'RS256' is none of"),
    "RS256 for PS384": (lambda i, k: jwt.encode(i.claims(), k["RS256"].private, "RS256", {"kid": "ES384"}), "the token's key 'ES384' is none of"),
    "a key that it brings": (lambda i, k: k["other"].sign(i.claims(), jwk=k["other"].public), "its signature is not that of"),
    "an address that it brings": (lambda i, k: k["other"].sign(i.claims(), jku="http://127.0.0.1:1/"), "its signature is not that of"),
    "an unknown key": (lambda i, k: k["other"].sign(i.claims(), kid="new"), "the token's key 'new' is none of"),
    "no key": (lambda i, _: forge(i, {"alg": "ES256"}, "AAAA"), "names no key"),
    "a short key": (lambda i, k: k["short"].sign(i.claims()), "below the minimum recommended|minimum"),
    "no signature": (lambda i, _: i.token().rpartition(".")[0] + ".", "its signature is not that of"),
    "another payload": (lambda i, _: with_payload_of(i.token(), i.token(sub="root")), "its signature is not that of"),
    "expired": (lambda i, _: i.token(exp=int(time.time()) - 31), r"it has expired, and it is 20..-..-..T..:..:..Z here; get a new one from http"),
    "not valid yet": (lambda i, _: i.token(nbf=int(time.time()) + 60), "it is not valid yet"),
    "from the future": (lambda i, _: i.token(iat=int(time.time()) + 60), "compare the clocks, or raise --oidc-leeway-s"),
    "another audience": (lambda i, _: i.token(aud="mail"), "it is for another audience; ask http.* for one with 'aud' epsparql or other"),
    "no audience": (lambda i, _: i.token(aud=None), "it lacks the claim 'aud'"),
    "another issuer": (lambda i, _: i.token(iss=i.url + "/"), "its 'iss' is another issuer"),
    "no issuer": (lambda i, _: i.token(iss=None), "it lacks the claim 'iss'"),
    "no end": (lambda i, _: i.token(exp=None), "it lacks the claim 'exp'"),
    "an endless end": (lambda i, _: i.token(exp=float("inf")), "the token is refused"),
    "an end that is no number": (lambda i, _: i.token(exp="soon"), "the token is refused"),
    "no subject": (lambda i, _: i.token(sub=None), "it lacks the claim 'sub'"),
    "another type": (lambda i, _: i.keys[0].sign(i.claims(), typ="logout+jwt"), "the token's type is 'logout.jwt'; send an access token"),
    "a critical extension": (lambda i, _: i.keys[0].sign(i.claims(), crit=["x"], x=1), "the token is (refused|no JWT)"),
    "no JSON": (lambda *_: "a.b.d", "the token is no JWT"),
    "empty parts": (lambda *_: "..", "the token is no JWT"),
    "too long": (lambda i, _: i.token(groups=["g" * 20_000]), "more than 16384 bytes; have the issuer put fewer claims in it"),
}


@pytest.fixture(scope="module")
def verify(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Callable[[str], Any]:
    """Verify a token as the server does, with fetches by a clock that goes on at each look."""
    verifier, run = verifier_of(tmp_path_factory.mktemp("rules"), issuer)
    return lambda token: run(verifier.verify(token))


class StepClock:
    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def verifier_of(directory: Path, issuer: Issuer, clock: StepClock | None = None) -> tuple[JwtVerifier, Callable[[Any], Any]]:
    settings = Settings(**settings_of(directory, issuer))
    return JwtVerifier(settings, IssuerKeys(issuer.url, clock or StepClock(10.0))), asyncio.run


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_token(verify: Callable[[str], Any], issuer: Issuer, keys: dict[str, Key], kind: str) -> None:
    make, words = BAD[kind]
    with pytest.raises(TokenRefused, match=words):
        verify(make(issuer, keys))


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512", "EdDSA", "RS256", "PS384"])
def test_a_good_token(verify: Callable[[str], Any], issuer: Issuer, keys: dict[str, Key], algorithm: str) -> None:
    grant = verify(keys[algorithm].sign(issuer.claims(groups=["operators"])))
    assert (grant.scopes, grant.holder) == ({"read:q", "ingest:a"}, "subject ada")


@pytest.mark.parametrize(
    ("claims", "times_s"),
    [({"aud": ["mail", "other"]}, {}), ({}, {"exp": -5}), ({}, {"nbf": 25}), ({"sub": "x" * 5_000}, {})],
    ids=["one of many audiences", "a clock that is late", "a clock that is early", "a long subject"],
)
def test_a_token_that_just_counts(verify: Callable[[str], Any], issuer: Issuer, claims: dict[str, Any], times_s: dict[str, int]) -> None:
    verify(issuer.token())  # fetches the keys, which may take long on a busy machine
    assert verify(issuer.token(**claims, **{name: int(time.time()) + shift for name, shift in times_s.items()})).scopes == frozenset()


def test_an_access_token_may_say_that_it_is_one(verify: Callable[[str], Any], issuer: Issuer) -> None:
    assert verify(issuer.keys[0].sign(issuer.claims(), typ="at+jwt"))


# ---------------------------------------------------------------- claims
@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, set()),
        ({"groups": []}, set()),
        ({"groups": ["Plant admins"]}, {"admin"}),
        ({"groups": "Plant admins"}, {"admin"}),
        ({"groups": ["plant admins", "admins", "Plant"]}, set()),
        ({"groups": ["x", "operators"]}, {"read:q", "ingest:a"}),
        ({"groups": {"operators": True}}, set()),
        ({"permissions": ["read:other", "delete:all", "metrics", 7, "read:two words"]}, {"read:other", "metrics"}),
        ({"permissions": "read:a read:b openid"}, {"read:a", "read:b"}),
        ({"realm_access": {"roles": ["reader"]}}, {"read:*"}),
        ({"realm_access.roles": ["reader"]}, {"read:*"}),
        ({"realm_access": ["roles"]}, set()),
    ],
)
def test_claims_and_scopes(verify: Callable[[str], Any], issuer: Issuer, claims: dict[str, Any], scopes: set[str]) -> None:
    assert verify(issuer.token(**claims)).scopes == scopes


def test_a_claim_of_many_values_is_read_in_part() -> None:
    assert len(list_values({"groups": ["g"] * 5_000}, "groups")) == 1_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "holds no rule; a line is '<claim>=<value> <scopes>'"),
        ("groups=a write:b\n", f":1: expected scopes out of {EXPECTED_SCOPES}, found 'write:b'"),
        ("\ngroups=a\n", ":2: found 'groups=a'"),
        ("groups admin\n", ":1: found 'groups admin'"),
        ("groups= admin\n", ":1: found 'groups= admin'"),
        ("=a admin\n", ":1: found '=a admin'"),
        ('"groups=a admin\n', ":1: no closing quotation"),
    ],
)
def test_rules_that_are_none(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "rules").write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_claim_rules(tmp_path / "rules")
    assert reason in str(refused.value)


def test_rules_change_while_the_server_runs(tmp_path: Path, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    verifier, run = verifier_of(tmp_path, issuer)
    token = issuer.token(groups=["operators"])
    assert run(verifier.verify(token)).scopes == {"read:q", "ingest:a"}
    (tmp_path / "rules").write_text("groups=operators metrics\n")
    assert run(verifier.verify(token)).scopes == {"metrics"}
    (tmp_path / "rules").write_text("groups\x00\n=")
    with caplog.at_level(logging.ERROR, "epsparql.tokens"):
        assert run(verifier.verify(token)).scopes == {"metrics"}
    assert "the rules of before hold" in caplog.text


# ---------------------------------------------------------------- keys
@pytest.fixture
def turning(tmp_path: Path) -> Iterator[tuple[Issuer, StepClock, Callable[[str], Any]]]:
    """An issuer whose keys change, a clock that the test sets, and what verifies a token."""
    with issuing(Key("one")) as issuer, asyncio.Runner() as runner:
        clock = StepClock()
        verifier, _ = verifier_of(tmp_path, issuer, clock)

        async def verify(token: str) -> Any:
            grant = await verifier.verify(token)
            if (fetching := verifier._keys._fetching) is not None:  # nobody waits for it
                await fetching
            return grant

        yield issuer, clock, lambda token: runner.run(verify(token))


Turning = tuple[Issuer, StepClock, Callable[[str], Any]]


def test_keys_are_fetched_once_and_again_when_they_are_old(turning: Turning) -> None:
    issuer, clock, verify = turning
    for age_s, fetches in ((0, 1), (1, 1), (299, 1), (301, 2), (500, 2), (602, 3)):
        clock.now_s = age_s
        assert verify(issuer.token())
        assert issuer.fetched == [DISCOVERY, "/keys"] * fetches


def test_many_that_need_keys_share_one_fetch(tmp_path: Path, turning: Turning) -> None:
    issuer, _, _ = turning
    verifier, run = verifier_of(tmp_path, issuer, StepClock())

    async def verify_together() -> None:
        await asyncio.gather(*(verifier.verify(issuer.token(sub=str(number))) for number in range(50)))

    run(verify_together())
    assert issuer.fetched == [DISCOVERY, "/keys"]


def test_a_new_key_is_fetched_when_a_token_names_it(turning: Turning) -> None:
    issuer, clock, verify = turning
    before = issuer.token()
    verify(before)
    issuer.keys.insert(0, Key("two"))
    clock.now_s = 5
    assert verify(issuer.token())
    assert verify(before)
    assert len(issuer.fetched) == 4


def test_a_key_that_is_gone_counts_no_longer(turning: Turning) -> None:
    """A token that it signed was remembered, and is refused once the keys are fetched again."""
    issuer, clock, verify = turning
    before = issuer.token()
    verify(before)
    issuer.keys = [Key("two")]
    clock.now_s = 301
    assert verify(before), "this request starts the fetch, and does not wait for it"
    with pytest.raises(TokenRefused, match="the token's key 'one' is none of"):
        verify(before)


def test_a_key_that_is_another_under_the_same_id(turning: Turning) -> None:
    issuer, clock, verify = turning
    before = issuer.token()
    verify(before)
    issuer.keys = [Key("one")]
    clock.now_s = 301
    verify(before)
    assert verify(issuer.token())
    with pytest.raises(TokenRefused, match="its signature is not that of"):
        verify(before)


def test_invented_keys_ask_the_issuer_seldom(turning: Turning) -> None:
    issuer, clock, verify = turning
    verify(issuer.token())
    for number in range(100):
        clock.now_s = 5 + number / 25
        with pytest.raises(TokenRefused, match="is none of"):
            verify(Key(f"invented {number}").sign(issuer.claims()))
    assert len(issuer.fetched) == 4, "at the first of them, and once at the start"


def test_an_issuer_that_is_silent(turning: Turning) -> None:
    """Keys that were fetched count for an hour. A token with a new key cannot be judged meanwhile."""
    issuer, clock, verify = turning
    verify(issuer.token())
    issuer.status = 500
    for clock.now_s in (301, 3599):
        assert verify(issuer.token())
    with pytest.raises(IssuerSilent, match=f"{issuer.url}{DISCOVERY} answered 500; --oidc-issuer is the URL before"):
        verify(Key("two").sign(issuer.claims()))
    clock.now_s = 3601
    with pytest.raises(IssuerSilent):
        verify(issuer.token())
    issuer.status, clock.now_s = 200, 3620
    assert verify(issuer.token())


def test_a_server_whose_issuer_is_silent(tmp_path: Path, keys: dict[str, Key]) -> None:
    """It starts, its own tokens count, and others are asked to come again."""
    with issuing(keys["ES256"]) as issuer:
        pass
    (tmp_path / "tokens").write_text(f"{digest('root')} admin\n")
    with serving(tmp_path / "data", token_file=tmp_path / "tokens", **settings_of(tmp_path, issuer)) as url:
        Client(url, "root").register("q", values("a"))
        answer = httpx.get(f"{url}/queries", headers=authorization(issuer.token(groups=["operators"])))
        assert "check that this machine reaches it" in str(assert_problem(answer, 503, "issuer-silent")["detail"])
        assert 1 <= int(answer.headers["retry-after"]) <= 6
        with dial(url, "/queries/q/feed", coded(issuer.token())) as connection:
            assert closing(connection)[0] == 1013, "clients try again"


@pytest.mark.parametrize(
    ("path", "document", "words"),
    [
        (DISCOVERY, {"issuer": "http://127.0.0.1/", "jwks_uri": "http://127.0.0.1/keys"}, "that of 'http://127.0.0.1/'; give this URL as --oidc-issuer"),
        (DISCOVERY, {"issuer": None, "jwks_uri": "file:///etc/passwd"}, "jwks_uri is 'file:///etc/passwd'; it has to be a URL with https"),
        (DISCOVERY, {"issuer": None, "jwks_uri": "http://keys.example/"}, "it has to be a URL with https"),
        (DISCOVERY, {"issuer": None}, "its jwks_uri is 'None'"),
        (DISCOVERY, b"<html>", "is no JSON object"),
        (DISCOVERY, [], "is no JSON object"),
        (DISCOVERY, b"[" * 100_000, "is no JSON object"),
        ("/keys", b"[" + b" " * (1 << 18), "has more than 262144 bytes"),
        ("/keys", {"keys": []}, "has no public key for signatures with an id"),
        ("/keys", {"keys": [{"kty": "oct", "kid": "one", "k": "AAAA"}, {"kty": "RSA", "kid": "two", "use": "enc"}, {"kty": "RSA"}, 7]}, "has no public key"),
        ("/keys", {"keys": {"one": 1}}, "has no public key"),
    ],
)  # fmt: skip
def test_documents_that_cannot_be_used(turning: Turning, path: str, document: Any, words: str) -> None:
    issuer, _, verify = turning
    if isinstance(document, dict) and document.get("issuer", "") is None:
        document["issuer"] = issuer.url
    issuer.changed[path] = document
    with pytest.raises(IssuerSilent) as fault:
        verify(issuer.token())
    assert words in str(fault.value)


def test_a_key_that_is_malformed(turning: Turning) -> None:
    issuer, _, verify = turning
    issuer.changed["/keys"] = {"keys": [{"kty": "EC", "kid": "one", "crv": "P-256", "x": "AA", "y": "AA"}]}
    with pytest.raises(TokenRefused, match=r"the key 'one' of .* cannot be used"):
        verify(issuer.token())


def test_a_slow_issuer_is_given_up(monkeypatch: pytest.MonkeyPatch, turning: Turning) -> None:
    issuer, _, verify = turning
    monkeypatch.setattr(issuer_documents, "_ALL_S", -1.0)
    with pytest.raises(IssuerSilent, match="took more than"):
        verify(issuer.token())


# ---------------------------------------------------------------- sign-in
def test_a_server_without_a_client_offers_no_sign_in(guarded: str) -> None:
    assert httpx.get(f"{guarded}/sign-in").json() is None
    assert_problem(httpx.post(f"{guarded}/sign-in", json={"refresh_token": "a"}), 404, "no-sign-in")


def test_where_users_sign_in(tmp_path: Path, keys: dict[str, Key]) -> None:
    """An endpoint without https is none, and an issuer that is silent is told so."""
    chosen = {"oidc_client_id": "console", "oidc_request": "scope=openid%20profile&audience=epsparql"}
    with issuing(keys["ES256"]) as issuer, serving(tmp_path / "data", **settings_of(tmp_path, issuer), **chosen) as url:
        about = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys", "token_endpoint": f"{issuer.url}/token"}
        issuer.changed[DISCOVERY] = about | {"authorization_endpoint": f"{issuer.url}/authorize"}
        asked = {"scope": "openid profile", "audience": "epsparql", "client_id": "console", "response_type": "code"}
        assert httpx.get(f"{url}/sign-in").json() == {"address": f"{issuer.url}/authorize", "parameters": asked}
        for document, words in ((b"[]", "the issuer cannot be asked"), ({"access_token": 7}, "the issuer gives no token: it answered 200")):
            issuer.changed["/token"] = document
            assert words in str(assert_problem(httpx.post(f"{url}/sign-in", json={"refresh_token": "a"}), 403, "sign-in-refused")["detail"])
    with issuing(keys["ES256"]) as issuer, serving(tmp_path / "other", **settings_of(tmp_path, issuer), **chosen) as url:
        issuer.changed[DISCOVERY] = about | {"issuer": issuer.url, "authorization_endpoint": "http://login.example/authorize"}
        issuer.changed[DISCOVERY]["jwks_uri"] = f"{issuer.url}/keys"
        assert "names no endpoints with https" in str(assert_problem(httpx.get(f"{url}/sign-in"), 403, "sign-in-refused")["detail"])
    with serving(tmp_path / "silent", **settings_of(tmp_path, issuer), **chosen) as url:
        assert_problem(httpx.get(f"{url}/sign-in"), 503, "issuer-silent")


# ---------------------------------------------------------------- settings
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--oidc-issuer", "https://login.example"], "--oidc-issuer needs --oidc-audience (whom the tokens are for) and --oidc-scopes"),
        (["--oidc-audience", "a"], "give --oidc-issuer too"),
        (["--oidc-issuer", "http://login.example", "--oidc-audience", "a", "--oidc-scopes", "RULES"], "give a URL with https"),
        (["--oidc-client-id", "console"], "--oidc-client-id are about an issuer; give --oidc-issuer too"),
        (
            [
                "--oidc-issuer",
                "http://127.0.0.1",
                "--oidc-audience",
                "a",
                "--oidc-scopes",
                "RULES",
                "--oidc-client-id",
                "c",
                "--oidc-request",
                "client_id=d",
            ],
            "--oidc-request 'client_id=d': give parameters such as scope=openid&audience=epsparql",
        ),
        (["--oidc-issuer", "login.example", "--oidc-audience", "a", "--oidc-scopes", "RULES"], "give a URL with https"),
        (["--oidc-issuer", "https://login.example", "--oidc-audience", "a", "--oidc-scopes", "none"], "--oidc-scopes none cannot be read"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, flags: list[str], words: str) -> None:
    (tmp_path / "rules").write_text(RULES)
    given = [str(tmp_path / "rules") if each == "RULES" else each for each in flags]
    assert words in refusal_of("--port", "0", "--data", str(tmp_path / "data"), *given)


def test_an_issuer_lets_others_in() -> None:
    assert settings_from({"host": "0.0.0.0", "oidc_issuer": "https://login.example", "origins": ["*"]}, {}).asks_for_tokens
