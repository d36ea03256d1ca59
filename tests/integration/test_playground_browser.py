"""The playground as a person meets it: by keyboard, in light and dark, on a phone, with hostile tokens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import zlib
from base64 import urlsafe_b64encode
from importlib.resources import files
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from kubeauthn.cli.main import main
from kubeauthn.cli.playground_pages import EXAMPLES, example
from kubeauthn.cli.world import World
from kubeauthn.testing._signing import SigningKey
from tests.integration.playground_browser import DESKTOP, PHONE, Watched, chromium, playground
from tests.integration.playground_process import PlaygroundProcess

pytestmark = pytest.mark.needs("chromium")

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server():
    with playground() as running:
        yield running


@pytest.fixture
def watched(browser: Browser):
    context = browser.new_context(viewport=DESKTOP)
    watched = Watched(context.new_page())
    yield watched
    context.close()
    assert watched.complaints == []


@pytest.fixture
def page(watched: Watched, server) -> Page:
    return watched.open(server.url)


@pytest.fixture(scope="module")
def shared(browser: Browser, server):
    """One page for tables of many small cases that each fill in all they look at."""
    context = browser.new_context(viewport=DESKTOP)
    watched = Watched(context.new_page())
    yield watched.open(server.url)
    context.close()
    assert watched.complaints == []


def part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def claims_of(name: str) -> dict[str, object]:
    return json.loads(example(name, time.time())[1])


def verdict(page: Page, text: str) -> None:
    expect(page.locator("#verdict")).to_contain_text(text)


def passes(page: Page, folder: Path) -> None:
    """`kubeauthn test` on what is exported."""
    (folder / "suite.yaml").write_text(exported(page, "Export as a test"))
    (folder / "authn.yaml").write_text(page.locator("#configuration").input_value())
    out, err = StringIO(), StringIO()
    world = World(stdin=StringIO(), stdout=out, stderr=err, environ={})
    code = main(["test", str(folder / "suite.yaml")], world)
    assert (code, "1 passed, 0 failed" in out.getvalue()) == (0, True), out.getvalue() + err.getvalue()


def exported(page: Page, button: str, *, mouse: bool = False) -> str:
    """By keyboard: a verdict that comes between the mouse's down and up moves the button away from under it."""
    found = page.get_by_role("button", name=button)
    if mouse:
        found.click()
    else:
        found.press("Enter")
    page.locator("#export-text:focus").wait_for()
    return page.locator("#export-text").input_value()


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.id")


# -- what it shows --------------------------------------------------------------------------------


def test_the_first_sight(page: Page):
    verdict(page, "authenticated as jane:external-user")
    assert page.locator("#steps > li").count() > 8
    mapping = page.locator("#steps > li", has_text="9. username")
    expect(mapping).to_contain_text('claims.username + ":external-user"')
    expect(mapping).to_contain_text('= "jane:external-user" string, cost 4')
    expect(mapping).to_contain_text('claims.username "jane"')
    expect(page.locator("#steps > li", has_text="jwt[0].claimMappings.extra[0]")).to_contain_text('= "cli" any, cost 2')
    expect(page.locator("#decoded")).to_contain_text("ends in 11 hours")


def test_every_example_authenticates_on_the_page(page: Page):
    for name in EXAMPLES:
        page.select_option("#example", name)
        expect(page.locator("#configuration")).to_have_value(example(name, 0)[0])
        verdict(page, "authenticated as ")
        expect(page.locator(".findings .level.error")).to_have_count(0)


def test_the_verdict_follows_what_is_typed(page: Page):
    given = page.locator("#given")
    given.fill(given.input_value().replace('"hd": "example.com"', '"hd": "evil.example"'))
    verdict(page, "refused: ")
    expect(page.locator("#steps > li", has_text="claimValidationRules[0]")).to_contain_text("✗ refused")
    given.fill("{")
    verdict(page, "the claims are no JSON")
    given.fill("")
    verdict(page, "Give claims or a token")


def test_a_fault_is_marked_at_its_line_and_leads_there(page: Page):
    configuration = page.locator("#configuration")
    configuration.fill(configuration.input_value().replace("userValidationRules", "userValidationRule"))
    verdict(page, "The configuration has faults")
    row = page.locator(".findings button", has_text='unknown field "jwt[0].userValidationRule"')
    expect(row).to_contain_text("did you mean userValidationRules?")
    expect(page.locator(".line.error")).to_have_text("  userValidationRule:")
    assert "did you mean" in (page.locator(".gutter .error").get_attribute("title") or "")
    row.click()
    assert focused(page) == "configuration"
    before = configuration.evaluate("area => area.value.slice(0, area.selectionStart)")
    assert before.count("\n") + 1 == int(page.locator(".gutter .error").inner_text())


def test_what_a_screen_reader_is_told(page: Page):
    """Names and roles: every field has its name, the verdict speaks up, the editor says that it is wrong."""
    expect(page.locator("body")).to_match_aria_snapshot("""
      - link "Skip to the verdict"
      - banner:
        - heading "kubeauthn playground" [level=1]
        - combobox "Example"
        - combobox "Kubernetes"
      - main:
        - region "Configuration":
          - heading "Configuration" [level=2]
          - textbox "Configuration"
          - heading /Faults and hints/ [level=3]
          - list /Faults and hints/
        - region "Claims or token":
          - heading "Claims or token" [level=2]
          - textbox "Claims or token"
        - region "Verdict":
          - heading "Verdict" [level=2]
          - status:
            - strong: /authenticated as jane:external-user/
          - list "Step by step"
          - button "Export as a test"
          - button "Show the commands"
          - button "Show the address"
    """)
    editor = page.get_by_role("textbox", name="Configuration")
    expect(editor).to_have_attribute("aria-invalid", "false")
    editor.fill(editor.input_value().replace("userValidationRules", "userValidationRule"))
    expect(page.get_by_role("status").first).to_contain_text("The configuration has faults")
    expect(editor).to_have_attribute("aria-invalid", "true")
    expect(editor).to_have_accessible_description(re.compile(r"Faults and hints \(1\)$"))
    expect(page.locator(f"#{editor.get_attribute('aria-details')}")).to_contain_text(
        "did you mean userValidationRules?"
    )


def test_a_rule_that_refuses_stands_out_and_leads_to_its_line(page: Page):
    page.select_option("#example", "dex")
    claims = page.locator("#given")
    claims.fill(claims.input_value().replace('"email_verified": true', '"email_verified": false'))
    row = page.locator(".steps li.no")
    expect(row).to_have_count(1)
    row.get_by_role("button", name="jwt[0].claimValidationRules[0], line 9").click()
    assert focused(page) == "configuration"
    before = page.locator("#configuration").evaluate("area => area.value.slice(0, area.selectionStart)")
    assert before.count("\n") + 1 == 9


def test_marks_go_along_with_their_lines(page: Page):
    """Held back, so that what is seen is what the page does before the next verdict."""
    configuration = page.locator("#configuration")
    marked = page.locator(".line.warning")
    before = marked.all_inner_texts()
    assert len(before) == 3
    page.route("**/judge", lambda route: None)
    configuration.evaluate("area => area.setSelectionRange(0, 0)")
    for keys in ("Enter", "Enter", "a", "Backspace", "Backspace"):
        configuration.press(keys)
        assert marked.all_inner_texts() == before
    numbers = [int(text) for text in page.locator(".gutter .warning").all_inner_texts()]
    lines = configuration.input_value().split("\n")
    assert [lines[number - 1] for number in numbers] == before


def test_a_release_is_chosen(page: Page):
    page.select_option("#release", "1.33")
    expect(page.locator(".findings .level.error").first).to_be_visible()
    page.select_option("#release", "1.34")
    verdict(page, "authenticated")


def test_a_token_is_decoded_and_verified_with_keys(page: Page):
    key = SigningKey.new("k1", "ES256")
    claims = {**claims_of("okta"), "exp": int(time.time()) + 600}
    page.select_option("#example", "okta")
    page.locator("#given").fill(f"Authorization: Bearer {key.sign(claims, {})}\n")
    verdict(page, "authenticated as okta:jane@example.com")
    expect(page.locator("#notes")).to_contain_text("the signature was not looked at")
    expect(page.locator("#decoded")).to_contain_text('"alg":"ES256"')
    expect(page.locator("#decoded")).to_contain_text("ends in 9 minutes")
    page.locator("#keys-details summary").click()
    page.locator("#keys").fill(json.dumps({"keys": [key.jwk()]}))
    expect(page.locator("#notes")).to_be_empty()
    expect(page.locator("#steps > li", has_text="3. signature")).to_contain_text("✓ ok")
    page.locator("#keys").fill(json.dumps({"keys": [SigningKey.new("k1", "ES256").jwk()]}))
    verdict(page, "refused: ")


def test_the_list_names_the_example_until_it_is_changed_and_brings_it_back(page: Page):
    chosen = page.locator("#example")
    assert chosen.input_value() == "kep"
    given = page.locator("#given")
    before = given.input_value()
    given.press("x")
    assert chosen.input_value() == ""
    given.fill("{")
    verdict(page, "the claims are no JSON")
    page.select_option("#example", "kep")
    verdict(page, "authenticated as jane:external-user")
    assert given.input_value() == before


def test_a_verdict_below_the_screen_is_seen_at_its_edge_and_leads_there(browser: Browser, server):
    context = browser.new_context(viewport=PHONE)
    page = Watched(context.new_page()).open(server.url)
    glance, told = page.locator("#glance"), page.locator("#verdict")
    expect(glance).to_have_text("✓ authenticated as jane:external-user")
    expect(told).not_to_be_in_viewport()
    expect(glance).to_be_in_viewport()
    page.locator("#given").fill("{")
    expect(glance).to_contain_text("the claims are no JSON")
    glance.click()
    expect(told).to_be_in_viewport()
    expect(glance).to_be_hidden()
    page.locator("#export-address").scroll_into_view_if_needed()
    expect(glance).to_be_hidden()
    page.evaluate("scrollTo(0, 0)")
    expect(glance).to_be_in_viewport()
    context.close()


def test_it_begins_with_the_files_of_the_command(watched: Watched):
    with playground({"configuration": "kind: mine\n", "claims": '{"sub": "me"}'}) as own:
        page = watched.open(own.url)
        expect(page.locator("#configuration")).to_have_value("kind: mine\n")
        expect(page.locator("#given")).to_have_value('{"sub": "me"}')
        assert page.locator("#example").input_value() == ""
        page.goto("about:blank")


def test_a_command_that_has_ended_is_said_to_have(watched: Watched):
    with PlaygroundProcess("--no-browser", "--port", "0") as command:
        page = watched.open(f"http://127.0.0.1:{command.port}/")
        command.end()
    page.locator("#given").fill('{"sub": "x"}')
    verdict(page, "does not answer: is it still running?")
    watched.complaints = [text for text in watched.complaints if "ERR_CONNECTION_REFUSED" not in text]


# -- by keyboard ----------------------------------------------------------------------------------


def test_everything_is_done_by_keyboard_alone(page: Page):
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    press("Tab")
    assert focused(page) == "example"
    page.keyboard.type("Dex")
    verdict(page, "authenticated as dex:jane@example.com")
    press("Tab")
    assert focused(page) == "release"
    press("Tab")
    assert focused(page) == "configuration"

    # a field by completion: first with the keys, then narrowed by typing
    press("Control+End")
    page.keyboard.type("anon")
    expect(page.locator("#completion")).to_be_visible()
    assert page.locator("#configuration").get_attribute("aria-activedescendant") == "completion-0"
    press("Enter")
    expect(page.locator("#completion")).to_be_hidden()
    expect(page.locator("#configuration")).to_have_value(re.compile(r"\nanonymous:\n  $"))
    press("Control+Space")
    expect(page.locator("#completion li")).to_have_count(2)
    press("ArrowDown")
    expect(page.locator("#completion li[aria-selected=true]")).to_contain_text("conditions")
    press("ArrowUp")
    press("Enter")
    press("Control+Space")
    press("Escape")
    expect(page.locator("#completion")).to_be_hidden()
    page.keyboard.type("true")
    assert page.locator("#configuration").input_value().endswith("\nanonymous:\n  enabled: true")
    verdict(page, "authenticated as dex:jane@example.com")

    # a fault, found and jumped to
    press("Enter")
    page.keyboard.type("oops: 1")
    verdict(page, "The configuration has faults")
    expect(page.locator(".findings").first).to_contain_text("oops")  # not yet while half of it was typed
    press("Tab")
    assert "oops" in page.evaluate("document.activeElement.textContent")
    press("Enter")
    assert focused(page) == "configuration"
    press("Home")
    press("Shift+End")
    press("Backspace")
    verdict(page, "authenticated")

    # to the claims and back, and on to the export
    for _ in range(10):
        if focused(page) == "given":
            break
        press("Tab")
    assert focused(page) == "given"
    press("Shift+Tab")
    assert page.evaluate("document.activeElement.closest('.findings') !== null")
    for _ in range(10):
        if focused(page) == "export-suite":
            break
        press("Tab")
    press("Enter")
    page.locator("#export-text:focus").wait_for()
    assert "dex:jane@example.com" in page.evaluate("getSelection().toString() || document.activeElement.value")


COLOURS = {
    "- issuer:": ["key issuer"],
    "    url: https://a.example # why": ["key url", "comment # why"],
    "- enabled: true": ["key enabled", "number true"],
    "  prefix: 'dex:'": ["key prefix", "text 'dex:'"],
    "- {url: https://a.example, audiences: [kubernetes]}": ["key url", "key audiences"],
    'username: {claim: sub, prefix: "dex:"}': ["key username", "key claim", "key prefix", 'text "dex:"'],
    "anonymous: {enabled: true, 'conditions': []}": ["key anonymous", "key enabled", "number true", "key 'conditions'"],
    '- {message: it\'s theirs, expression: "a"} # c': ["key message", "key expression", 'text "a"', "comment # c"],
    "message: it's theirs # and not ours": ["key message", "comment # and not ours"],
    "a\u2028b: {c: d}": ["key a\u2028b", "key c"],
    'a: {inches: 5" x, b: true}': ["key a", "key inches", "key b", "number true"],
    'a: {c: "no end, b: \\\\': ["key a", "key c", 'text "no end, b: \\\\'],
    "message: 'a # in it'": ["key message", "text 'a # in it'"],
}


def test_each_part_of_a_line_has_its_colour(shared: Page):
    area = shared.locator("#configuration")
    area.fill("\n".join(COLOURS))
    lines = area.evaluate(
        """area => [...area.parentElement.querySelectorAll("code .line")].map((line) => [
            line.textContent,
            [...line.children].map((part) => part.className.slice(2) + " " + part.textContent.trim()),
        ])"""
    )
    assert {text.rstrip("\n"): parts for text, parts in lines} == COLOURS


def test_a_line_of_many_quotation_marks_is_coloured_in_time(shared: Page):
    took = """async ([colour, text]) => {
        const colours = await import("/colours.js");
        const begin = performance.now();
        const parts = colours[colour](text);
        return [parts.map((part) => part.textContent ?? part).join("") === text, performance.now() - begin];
    }"""
    marks = '\\"' * 100_000
    for colour, text in (("yamlLine", f'a: {{"{marks}'), ("jsonLine", f'{{"a": "{marks}')):
        whole, milliseconds = shared.evaluate(took, [colour, text])
        assert (whole, milliseconds < 5000) == (True, True)


def test_undo_takes_back_a_completion_and_a_new_line(page: Page):
    configuration = page.locator("#configuration")
    before = configuration.input_value()
    configuration.press("Control+End")
    configuration.press("Control+Space")
    configuration.press("Enter")
    assert configuration.input_value() == before + "anonymous:\n  "
    configuration.press("Control+z")
    assert configuration.input_value() == before


HEAD = "jwt:\n- issuer:\n    url: x\n"
COMPLETIONS = {
    "the top": ("|", ["kind", "apiVersion", "jwt", "anonymous"]),
    "the top, without what is there": ("kind: x\n|\njwt:\n- issuer:", ["apiVersion", "anonymous"]),
    "a value": ("kind: |", ["AuthenticationConfiguration"]),
    "a value that has begun": ("apiVersion: apiserver.config.k8s.io/v1b|", ["apiserver.config.k8s.io/v1beta1"]),
    "a value that is one of two": ("anonymous:\n  enabled: |", ["true", "false"]),
    "an item of a list": ("jwt:\n- |", ["issuer", "claimValidationRules", "claimMappings", "userValidationRules"]),
    "an item of a list that is indented": ("jwt:\n  - iss|", ["issuer"]),
    "a second item": (HEAD + "- iss|", ["issuer"]),
    "beside the first key of an item": (HEAD + "  |", ["claimValidationRules", "claimMappings", "userValidationRules"]),
    "below a key of an item": ("jwt:\n- issuer:\n    aud|", ["audiences", "audienceMatchPolicy"]),
    "a list in an item of a list": (HEAD + "  claimValidationRules:\n  - claim: hd\n    m|", ["message"]),
    "its next item": (HEAD + "  claimValidationRules:\n  - claim: a\n    requiredValue: b\n  - c|", ["claim"]),
    "the same, indented": (HEAD + "  claimValidationRules:\n    - claim: hd\n      req|", ["requiredValue"]),
    "three deep": (HEAD + "  claimMappings:\n    username:\n      |", ["claim", "prefix", "expression"]),
    "back from three deep": (
        HEAD + "  claimMappings:\n    username:\n      claim: x\n    |",
        ["groups", "uid", "extra"],
    ),
    "before what comes later": (
        HEAD + "  claimMappings:\n    |\n    extra:\n    - key: x",
        ["username", "groups", "uid"],
    ),
    "a list below a mapping": (HEAD + "  claimMappings:\n    extra:\n    - key: x\n      |", ["valueExpression"]),
    "past comments and blanks": (HEAD + "\n  # why\n\n  claimM|", ["claimMappings"]),
    "in a value without choices": (HEAD.replace("x\n", "h|\n"), []),
    "in a comment": ("# k|", []),
    "in a flow": ("jwt: [{|", []),
    "below what is not known": ("constructor:\n  |", []),
}


@pytest.mark.parametrize(("text", "offered"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_completion_offers_what_the_schema_has_there(shared: Page, text: str, offered: list[str]):
    area = shared.locator("#configuration")
    area.fill(text.replace("|", ""))
    area.evaluate("(area, at) => area.setSelectionRange(at, at)", text.index("|"))
    area.press("Control+Space")
    shown = shared.evaluate(
        "[...document.querySelectorAll('#completion:not([hidden]) li')].map(li => li.firstChild.data)"
    )
    assert shown == offered


def test_completion_goes_on_where_the_next_key_belongs(page: Page):
    area = page.locator("#configuration")
    area.fill("")
    area.press("Control+Space")
    for expected in ("kind: ", "kind: AuthenticationConfiguration"):
        area.press("Enter")
        expect(area).to_have_value(expected)
        area.press("Control+Space")
    area.press("Enter")
    page.keyboard.type("jw")
    area.press("Tab")
    page.keyboard.type("claimV")
    area.press("Enter")
    page.keyboard.type("exp")
    area.press("Enter")
    assert area.input_value() == ("kind: AuthenticationConfiguration\njwt:\n- claimValidationRules:\n  - expression: ")


# -- what leaves the page, and what does not ------------------------------------------------------


def test_all_requests_go_to_the_server_and_the_page_is_small(watched: Watched, server):
    sizes: list[int] = []
    watched.page.on("response", lambda response: sizes.append(len(response.body())))
    page = watched.open(server.url)
    page.select_option("#example", "github-actions")
    verdict(page, "authenticated as github:")
    for button in ("Export as a test", "Show the commands", "Show the address"):
        exported(page, button)
    assert {url.partition("//")[2].partition("/")[0] for url in watched.requests} == {server.url[7:-1]}
    paths = {url.removeprefix(server.url) for url in watched.requests}
    assert {"", "app.js", "style.css", "setting.json", "schema.json", "judge"} <= paths
    assert sum(sizes) < 500_000


def test_the_state_is_in_the_address_and_comes_back(watched: Watched, page: Page, browser: Browser):
    page.select_option("#example", "gitlab")
    verdict(page, "authenticated as gitlab:")
    given = page.locator("#given")
    given.fill(given.input_value().replace("example/shop", "example/ünï\\u2028"))
    page.select_option("#release", "1.34")
    verdict(page, "authenticated as gitlab:example/ünï")
    address = exported(page, "Show the address")
    assert address == page.evaluate("location.href")
    context = browser.new_context(viewport=DESKTOP)
    again = Watched(context.new_page()).open(address)
    verdict(again, "authenticated as gitlab:example/ünï")
    assert again.locator("#release").input_value() == "1.34"
    assert again.locator("#given").input_value() == given.input_value()
    context.close()


def test_back_leads_to_what_an_example_replaced(page: Page):
    page.wait_for_url("**/#*")
    first = page.url
    given = page.locator("#given")
    given.fill(given.input_value().replace("jane", "mine"))
    page.wait_for_url(lambda url: url != first)
    own = page.url
    page.select_option("#example", "okta")
    page.wait_for_url(lambda url: url != own)
    verdict(page, "authenticated as okta:")
    page.go_back()
    verdict(page, "authenticated as mine:external-user")


def unpacked(page: Page, address: str) -> str:
    return page.evaluate(
        """async (packed) => {
            const bytes = Uint8Array.from(atob(packed.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
            const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
            return await new Response(stream).text();
        }""",
        address.partition("#")[2],
    )


@pytest.mark.parametrize(
    "form",
    ["{}", "Bearer {}", "Authorization: Bearer {}\n", '{{"id_token": "{}"}}', "{}\n\n", "x {}", "half"],
)
def test_a_token_is_never_in_the_address(watched: Watched, page: Page, form: str):
    watched.page.evaluate(
        """() => { window.kept = []; for (const name of ["pushState", "replaceState"]) {
            const real = history[name].bind(history);
            history[name] = (...all) => { window.kept.push(JSON.stringify(all[0]) + all[2]); real(...all); };
        } }"""
    )
    signed = SigningKey.new("k1", "ES256").sign({**claims_of("kep"), "s3cr3t": "s3cr3t"}, {})
    text = signed[: len(signed) // 2] if form == "half" else form.format(signed)
    page.locator("#given").fill(text)
    page.locator("#keys-details summary").click()
    page.locator("#keys").fill('{"keys": []}')
    # a change to the configuration is kept, so whatever would be kept of the token is there by then
    configuration = page.locator("#configuration")
    configuration.fill(configuration.input_value() + "# marked\n")
    for _ in range(100):
        state = json.loads(unpacked(page, page.url))
        if "# marked" in state["configuration"]:
            break
        page.wait_for_timeout(50)
    assert set(state) == {"configuration", "release"}
    for address in page.evaluate("window.kept"):
        assert address.startswith("null#")
        assert "eyJ" not in unpacked(page, address)
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.evaluate("document.cookie") == ""


@pytest.mark.parametrize("indent", [None, 0, 2, "\t"], ids=["one line", "lines", "indented", "tabs"])
def test_a_token_among_claims_is_known_however_its_json_is_written(page: Page, indent: int | str | None):
    """JSON may have blanks behind its first brace: then its base64 begins with eyA, ewo or ewk, and not with eyJ."""
    texts = [json.dumps(value, indent=indent).encode() for value in ({"alg": "RS256"}, {"sub": "jane"})]
    token = ".".join([*(urlsafe_b64encode(text).rstrip(b"=").decode() for text in texts), "A" * 40])
    page.locator("#given").fill(json.dumps({**claims_of("kep"), "username": "changed", "raw": token}))
    verdict(page, "authenticated as changed:external-user")
    exported(page, "Show the address")
    assert set(json.loads(unpacked(page, page.url))) == {"configuration", "release"}


def test_a_long_word_is_looked_through_once(shared: Page):
    """Word by word: 200,000 characters took minutes, and anybody's link to the page may hold them."""
    took = """async (text) => {
        const { holdsToken } = await import("/address.js");
        const begin = performance.now();
        return [holdsToken(text), performance.now() - begin];
    }"""
    found, milliseconds = shared.evaluate(took, "x" * 200_000)
    assert (found, milliseconds < 5000) == (False, True)
    found, milliseconds = shared.evaluate(took, "x" * 200_000 + ".eyJhbGciOiJ9.eyJhbGciOiJ9.AAAAAAAA" + "x.x" * 50_000)
    assert (found, milliseconds < 5000) == (True, True)


def test_claims_with_long_names_of_hosts_are_kept(page: Page):
    page.locator("#given").fill(
        json.dumps({**claims_of("kep"), "username": "a", "host": "database01.production.example0"})
    )
    verdict(page, "authenticated as a:external-user")
    exported(page, "Show the address")
    assert "database01" in json.loads(unpacked(page, page.url))["claims"]


@pytest.mark.parametrize("state", ["#", "#AAAA", "#%00", "#" + "A" * 100_000, "#<script>", "#null"])
def test_an_address_that_was_cut_off_begins_anew(watched: Watched, server, state: str):
    verdict(watched.open(server.url + state), "authenticated as jane:external-user")


def test_an_address_that_unpacks_into_very_much_begins_anew(watched: Watched, server):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b'{"claims":"' + b" " * 50_000_000 + b'"}') + packer.flush()
    address = server.url + "#" + urlsafe_b64encode(packed).rstrip(b"=").decode()
    verdict(watched.open(address), "authenticated as jane:external-user")


# -- hostile texts --------------------------------------------------------------------------------


def test_markup_in_claims_and_configuration_is_text(page: Page):
    configuration = page.locator("#configuration")
    configuration.fill(f"# {NASTY}\n" + configuration.input_value().replace("kind:", f"{NASTY}: 1\nkind:"))
    expect(page.locator(".findings")).to_contain_text(NASTY)
    page.select_option("#example", "dex")
    claims = {**claims_of("dex"), "name": NASTY, NASTY: {NASTY: [NASTY]}, "groups": [NASTY], "email": NASTY}
    page.locator("#given").fill(json.dumps(claims))
    verdict(page, f"authenticated as dex:{NASTY}")
    page.locator("#given").fill(f"{part({'alg': 'RS256', NASTY: NASTY})}.{part({**claims, 'exp': 9999999999})}.AAAA")
    expect(page.locator("#decoded")).to_contain_text(NASTY)
    exported(page, "Export as a test")
    page.locator("#given").fill(f"{NASTY}.a.b")
    verdict(page, "this is neither a JSON object nor a token")
    assert page.locator("main img, main script").count() == 0


TURNED = "admin\u202egnp.exe\x9b\xa0\u200b\U000e0041\u3164\ufe0f\u2800"


def test_characters_that_turn_or_hide_others_are_shown_by_their_numbers(page: Page):
    shown = r"admin\u202egnp.exe\x9b\xa0\u200b\U000e0041\u3164\ufe0f\u2800"
    page.select_option("#example", "dex")
    claims = {**claims_of("dex"), "groups": [TURNED], "email": TURNED, TURNED: TURNED, "exp": 9999999999}
    for given in (json.dumps(claims), f"{part({'alg': 'RS256', 'typ': TURNED})}.{part(claims)}.AAAA"):
        page.locator("#given").fill(given)
        verdict(page, f"authenticated as dex:{shown}")
        expect(page.locator("#user")).to_contain_text(shown)
        expect(page.locator("#steps")).to_contain_text(f'"dex:{shown}"')
    expect(page.locator("#decoded")).to_contain_text(f'"typ":"{shown}"')
    told = page.locator("#user, #steps, #decoded, #verdict, #glance").all_inner_texts()
    assert not set("".join(told)) & set(TURNED[5:6] + TURNED[13:])


def test_the_place_in_an_expression_stands_below_it(page: Page):
    page.locator("#configuration").fill(
        example("kep", 0)[0].replace('claims.username + "', 'claims.username + user + "')
    )
    quoted = page.locator("#findings .quoted")
    expect(quoted).to_have_count(2)
    above, below = quoted.all_text_contents()
    assert (above, below) == (' | claims.username + user + ":external-user"', " | ..................^")
    assert len({row.evaluate("row => getComputedStyle(row).fontFamily") for row in quoted.all()}) == 1
    assert "mono" in quoted.first.evaluate("row => getComputedStyle(row).fontFamily")


def test_a_token_with_something_around_it_is_told_what(page: Page):
    claims = {**claims_of("kep"), "exp": 9999999999}
    page.locator("#given").fill(f'"{part({"alg": "RS256"})}.{part(claims)}.AAAA"')
    verdict(page, "there are quotation marks around the token")
    expect(page.locator("#steps")).to_be_empty()


def test_a_claim_that_is_absent_is_no_text(page: Page):
    page.select_option("#example", "dex")
    page.locator("#configuration").fill(example("kep", 0)[0].replace("claims.some_claim", "claims.?no.orValue('x')"))
    page.locator("#given").fill(example("kep", time.time())[1])
    expect(page.locator("#steps > li", has_text="claims.?no")).to_contain_text("claims.no absent")


def test_names_that_mean_something_in_javascript_are_names(page: Page):
    page.select_option("#example", "dex")
    claims = {**claims_of("dex"), "exp": 9999999999, "constructor": 1, "toString": "t", "hasOwnProperty": None}
    text = json.dumps(claims)[:-1] + ', "__proto__": {"polluted": 1}}'
    payload = urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    page.locator("#given").fill(f"{part({'alg': 'RS256'})}.{payload}.AAAA")
    expect(page.locator("#decoded")).to_contain_text("__proto__")
    assert page.evaluate("({}).polluted") is None
    verdict(page, "authenticated as dex:jane@example.com")


# -- export ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_exported_suite_passes(shared: Page, tmp_path, name: str):
    shared.select_option("#example", name)
    expect(shared.locator("#configuration")).to_have_value(example(name, 0)[0])
    passes(shared, tmp_path)


ODD_CLAIMS = {
    "refused by a rule": {"hd": "evil.example"},
    "refused by a rule for the user": {"username": "system:x"},
    "over": {"exp": 1},
    "for somebody else": {"aud": "other"},
    "of another issuer": {"iss": "https://other.example"},
    "with characters that YAML minds": {"username": "a\u2028b\x85c\ufeffd: # 'e' \"f\"\t\u202e|>"},
    "with numbers": {"username": "n", "n": 1e21, "m": 0.1, "i": 12345678901234567890},
    "with an extra that is empty": {"some_claim": ""},
}


@pytest.mark.parametrize("changes", ODD_CLAIMS.values(), ids=ODD_CLAIMS)
@pytest.mark.parametrize("as_token", [False, True], ids=["claims", "token"])
def test_the_exported_suite_passes_whatever_the_verdict(shared: Page, tmp_path, changes: dict, as_token: bool):
    configuration, text = example("kep", time.time())
    claims = {**json.loads(text), **changes}
    shared.locator("#configuration").fill(configuration)
    written = json.dumps(claims, ensure_ascii=False)
    shared.locator("#given").fill(f"{part({'alg': 'RS256'})}.{part(claims)}.AAAA" if as_token else written)
    passes(shared, tmp_path)


def test_a_token_that_a_case_could_not_describe_is_not_exported(page: Page):
    claims = claims_of("kep")
    del claims["exp"]
    page.locator("#given").fill(f"{part({'alg': 'RS256'})}.{part(claims)}.AAAA")
    verdict(page, "refused")
    assert exported(page, "Export as a test").startswith("# a case has claims, and takes exp to be right")


def shell(script: str, folder) -> subprocess.CompletedProcess[str]:
    named = f'kubeauthn() {{ "{sys.executable}" -m kubeauthn "$@"; }}\n'
    return subprocess.run(["sh", "-c", named + script], cwd=folder, capture_output=True, text=True, timeout=50)


def test_the_commands_run_and_say_the_same(page: Page, tmp_path):
    page.select_option("#example", "keycloak")
    verdict(page, "authenticated as keycloak:jane")
    done = shell(exported(page, "Show the commands", mouse=True), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "authenticated\n  username  keycloak:jane" in done.stdout


@pytest.mark.parametrize(
    ("lacking", "signed_by", "reason"),
    [("", "another", "failed to verify signature"), ("exp", "the issuer", "oidc: token is expired")],
    ids=["signature", "end"],
)
def test_what_claims_cannot_say_of_a_token_is_not_exported_as_claims(
    page: Page, tmp_path, lacking: str, signed_by: str, reason: str
):
    """Claims are taken as verified, and as complete: a case with them would not pass, nor the command refuse them."""
    key, other = SigningKey.new("k1", "ES256"), SigningKey.new("k1", "ES256")
    claims = {**claims_of("okta"), "exp": int(time.time()) + 600}
    claims.pop(lacking, None)
    token = (other if signed_by == "another" else key).sign(claims, {})
    keys = json.dumps({"keys": [key.jwk()]})
    page.select_option("#example", "okta")
    page.locator("#given").fill(token)
    page.locator("#keys-details summary").click()
    page.locator("#keys").fill(keys)
    verdict(page, f"refused: oidc: verify token: {reason}")
    assert exported(page, "Export as a test").startswith("# a case has claims, and takes ")
    script = exported(page, "Show the commands")
    assert not any(piece in script for piece in token.split("."))
    (tmp_path / "token.jwt").write_text(token)
    (tmp_path / "jwks.json").write_text(keys)
    done = shell(script, tmp_path)
    assert done.returncode == 1, done.stderr
    assert f"refused: oidc: verify token: {reason}" in done.stdout


def test_no_text_of_a_shared_address_becomes_a_command(page: Page, tmp_path):
    script = exported(page, "Show the commands")
    end = script.partition("<<'")[2].partition("'")[0]
    configuration = page.locator("#configuration")
    bait = "\n".join(f"{end}{'_' * count}\ntouch caught-{count}" for count in range(4))
    configuration.fill(
        f"{configuration.input_value()}{bait}\n$(touch caught-a) `touch caught-b` '\n\x1b[201~touch caught-c\n"
    )
    verdict(page, "The configuration has faults")
    script = exported(page, "Show the commands")
    assert "\x1b" not in script
    shell(script, tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["authn.yaml", "claims.json"]


def test_a_token_is_in_no_export(page: Page):
    signed = SigningKey.new("k1", "ES256").sign(claims_of("kep"), {})
    page.locator("#given").fill(signed)
    verdict(page, "authenticated")
    for button in ("Export as a test", "Show the commands", "Show the address"):
        text = exported(page, button)
        assert not any(piece in text for piece in signed.split("."))


# -- how it looks ---------------------------------------------------------------------------------


AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(browser: Browser, server, scheme, size):
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = Watched(context.new_page()).open(server.url)
    page.evaluate(AXE)

    def violations() -> list[str]:
        found = page.evaluate("axe.run()")["violations"]
        return [f"{one['id']}: {node['html']} {node['failureSummary']}" for one in found for node in one["nodes"]]

    assert violations() == []
    page.locator("#configuration").press("Control+End")
    page.locator("#configuration").press("Control+Space")
    expect(page.locator("#completion")).to_be_visible()
    assert violations() == []
    page.keyboard.type("oops: 1\n")
    verdict(page, "The configuration has faults")
    assert violations() == []
    page.select_option("#example", "okta")
    claims = claims_of("okta")
    page.locator("#given").fill(f"{part({'alg': 'HS256'})}.{part(claims)}.AAAA")
    verdict(page, "refused")
    page.locator("#keys-details summary").click()
    exported(page, "Show the commands")
    assert violations() == []
    context.close()


@pytest.mark.parametrize("width", [320, 375, 760, 761, 1280])
def test_no_width_needs_sideways_scrolling(browser: Browser, server, width: int):
    context = browser.new_context(viewport={"width": width, "height": 740})
    page = Watched(context.new_page()).open(server.url)
    page.locator("#given").fill(
        f"{part({'alg': 'RS256', 'kid': 'k' * 300})}.{part({'x' * 300: 'y' * 900, 'sub': 's'})}.AA"
    )
    expect(page.locator("#decoded")).to_contain_text("kkk")
    exported(page, "Show the commands")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_coloured_layer_lies_exactly_below_the_text(browser: Browser, server, size):
    context = browser.new_context(viewport=size)
    page = Watched(context.new_page()).open(server.url)
    long = "word " * 60
    page.locator("#configuration").fill(
        "\n".join(f"key{n}: '{long if n % 7 == 0 else n}' # \tcommented" for n in range(80))
    )
    page.locator("#given").fill(json.dumps({f"claim{n}": long.strip() + "x" * n * 9 for n in range(20)}, indent=2))
    for editor in ("#configuration", "#given"):
        for place in ("area.scrollTop = 0", "area.scrollTop = 1e6, area.scrollLeft = 1e6"):
            area = page.locator(editor)
            area.evaluate(f"area => {{ {place} }}")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            seen = area.evaluate(
                """area => {
                    const style = getComputedStyle(area);
                    const copy = area.parentElement.querySelector("code");
                    const box = area.getBoundingClientRect(), lines = copy.getBoundingClientRect();
                    const paddings = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
                    return {
                        top: lines.top - box.top - parseFloat(style.paddingTop) + area.scrollTop,
                        left: lines.left - box.left - parseFloat(style.paddingLeft) + area.scrollLeft,
                        height: area.scrollHeight - paddings - lines.height,
                        width: area.clientWidth - area.parentElement.querySelector("pre").getBoundingClientRect().width,
                        bar: area.offsetWidth - area.clientWidth,
                    };
                }"""
            )
            assert seen.pop("bar") > 0
            assert all(abs(apart) < 1 for apart in seen.values()), (editor, place, seen)
    context.close()
