"""The Kubernetes project's own Python client against our cluster: argv[1] is its address, argv[2] the token.
What it prints last is checked."""

import sys
import time

from kubernetes import client, watch
from kubernetes.stream import stream

configuration = client.Configuration(host=sys.argv[1])
configuration.api_key = {"authorization": "Bearer " + sys.argv[2]}
api = client.ApiClient(configuration)
core, batch = client.CoreV1Api(api), client.BatchV1Api(api)
SPACE = "boxes"

locked = client.V1SecurityContext(
    allow_privilege_escalation=False, capabilities=client.V1Capabilities(drop=["ALL"]))
spec = client.V1PodSpec(
    restart_policy="Never", automount_service_account_token=False,
    security_context=client.V1PodSecurityContext(
        run_as_non_root=True, run_as_user=70001,
        seccomp_profile=client.V1SeccompProfile(type="RuntimeDefault")),
    containers=[client.V1Container(
        name="main", image="debian:12", command=["sleep", "300"], security_context=locked)])
job = client.V1Job(
    metadata=client.V1ObjectMeta(name="vendors", labels={"whose": "vendor"}),
    spec=client.V1JobSpec(backoff_limit=0, template=client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"whose": "vendor"}), spec=spec)))

before = core.list_namespaced_pod(SPACE).metadata.resource_version
batch.create_namespaced_job(SPACE, job)
try:
    batch.create_namespaced_job(SPACE, job)
    raise SystemExit("made twice")
except client.ApiException as error:
    assert error.status == 409, error

bookmarks = 0
pod = None
for event in watch.Watch().stream(
        core.list_namespaced_pod, SPACE, resource_version=before, allow_watch_bookmarks=True,
        label_selector="whose=vendor", timeout_seconds=20):
    if event["type"] == "BOOKMARK":
        bookmarks += 1
        break
    assert event["type"] in ("ADDED", "MODIFIED"), event
    if event["object"].status.phase == "Running":
        pod = event["object"].metadata.name
assert pod and bookmarks == 1, (pod, bookmarks)

running = stream(
    core.connect_get_namespaced_pod_exec, pod, SPACE, container="main",
    command=["sh", "-c", "read line; echo out $line; echo err >&2; exit 3"],
    stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False)
running.write_stdin("word\n")
out = err = ""
while running.is_open():
    running.update(timeout=1)
    out += running.read_stdout() if running.peek_stdout() else ""
    err += running.read_stderr() if running.peek_stderr() else ""
assert (out, err, running.returncode) == ("out word\n", "err\n", 3), (out, err, running.returncode)

broken = client.V1Pod(metadata=client.V1ObjectMeta(name="broken"), spec=client.V1PodSpec(
    containers=[client.V1Container(name="main", image="debian:12")]))
try:
    core.create_namespaced_pod(SPACE, broken)
    raise SystemExit("let in")
except client.ApiException as error:
    assert error.status == 403 and "violates PodSecurity" in error.body, error

try:
    core.read_namespaced_pod("nobody", SPACE)
    raise SystemExit("there")
except client.ApiException as error:
    assert error.status == 404, error

batch.delete_namespaced_job(
    "vendors", SPACE, body=client.V1DeleteOptions(propagation_policy="Foreground"))
for _ in range(300):
    if not batch.list_namespaced_job(SPACE).items and not core.list_namespaced_pod(SPACE).items:
        break
    time.sleep(0.1)
else:
    raise SystemExit("it does not go")

print("all of it worked")
