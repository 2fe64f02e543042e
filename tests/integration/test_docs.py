"""The reference pages name everything that the sources have, and nothing that they don't."""
import http.client
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def table_rows(page):
    """Cells of each row that has something in backquotes."""
    for line in text(page).splitlines():
        if line.startswith("| ") and "`" in line:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def source_errors():
    source = text("protocol/api_error.cpp")
    constants = dict(re.findall(r'string_view (\w+) = "(\w+)";', source))
    rows = re.findall(r'return \{(\d+), (?:"(\w+)"|(\w+)), "(\w+)"\};', source)
    assert len(rows) > 30, "the table of errors was not found"
    return {(status, code, quoted or constants[named]) for status, quoted, named, code in rows}


def page_errors():
    return {(row[0], row[1].strip("`"), row[2].strip("`"))
            for row in table_rows("docs/errors.md") if row[0].isdigit()}


def source_metrics():
    source = re.sub(r"//.*", "", text("control/exposition.cpp"))
    kinds = re.findall(
        r'(?:family|single)\(\s*"(\w+)",\s*(?:"[^"]*"\s*)+,\s*MetricType::(\w+)', source)
    assert len(kinds) > 15, "the list of metrics was not found"
    named = set(re.findall(r'"((?:flashgate|process)_\w+)"', source))
    assert named == {name for name, _ in kinds}, "a metric is declared in a way unknown here"
    return {(name, kind.lower()) for name, kind in kinds}


def page_metrics():
    return {(row[0].strip("`"), row[1]) for row in table_rows("docs/metrics.md")
            if re.fullmatch(r"`(flashgate|process)_\w+`", row[0])}


def test_errors_page_has_every_error_with_its_status_type_and_code():
    assert page_errors() == source_errors()


def test_metrics_page_has_every_metric_with_its_type():
    assert page_metrics() == source_metrics()


def test_metrics_page_has_every_outcome():
    source = re.search(r"outcome_names = \{(.*?)\};", text("protocol/exchange.cpp"), re.S)
    outcomes = re.findall(r'"(\w+)"', source.group(1))
    section = text("docs/metrics.md").split("## Outcomes")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == outcomes


def test_metrics_page_names_every_label_of_a_running_gateway(gateway, backend):
    running = gateway(backend)
    assert running.chat("hi").status == 200
    connection = http.client.HTTPConnection("127.0.0.1", running.admin_port, timeout=10)
    connection.request("GET", "/metrics")
    served = connection.getresponse().read().decode()
    connection.close()
    labels = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[2]))
              for row in table_rows("docs/metrics.md") if row[0].startswith("`flashgate_")}
    seen = re.findall(r"^(flashgate_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$", served, re.M)
    assert "flashgate_requests_total" in dict(seen)
    for name, inside in seen:
        found = set(re.findall(r'(\w+)="', inside)) - {"le"}
        assert found == labels[name], name


@pytest.mark.parametrize("page", sorted(
    str(path.relative_to(ROOT)) for path in
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]))
def test_links_between_pages_lead_somewhere(page):
    whole = re.sub(r"```.*?```", "", text(page), flags=re.S)
    here = (ROOT / page).parent
    missing = [target for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", whole)
               if "://" not in target and not (here / target).exists()]
    assert not missing
