# What somebody does with the container image: loaded, looked at, a sealed command, a gateway that is started
# and stopped, and removed. The first thing that is not as it should be ends it.
version=$1
file=$2
said() { echo "    $*"; }
wrong() { echo "wrong: $*" >&2; exit 1; }
image=hermetic:$(echo "${version}" | tr '~' -)
name=hermetic-dist-$$
trap 'docker rm -f $name >/dev/null 2>&1; docker rmi -f $image hermetic:latest >/dev/null 2>&1' EXIT
run() { docker run --rm --network none "$@"; }

docker load -i "$file" >/dev/null || wrong "it cannot be loaded"
said "$image: $(docker image inspect -f '{{.Size}}' $image | awk '{ printf "%.0f MB unpacked", $1 / 1e6 }')"

# As whom, with what.
[ "$(run $image version | head -n 1)" = "hermetic ${version%~dev}" ] || wrong "another version"
[ "$(run --entrypoint id $image -u)" = 1000 ] || wrong "it runs as $(run --entrypoint id $image)"
[ "$(run --entrypoint stat $image -c %U:%a /home/hermetic/.hermes)" = hermetic:700 ] || wrong "the home"
run --entrypoint python3 $image -c 'import json, ssl; assert ssl.create_default_context().get_ca_certs()' ||
    wrong "no Python, or no certificates"

# Without the options of `hermetic compose` there is no sandbox, and the words name what is missing.
if out=$(run $image exec -- echo sealed 2>&1); then
    [ "$out" = sealed ] || wrong "neither a sandbox nor a refusal: $out"
else
    echo "$out" | grep -q -- '--security-opt' || wrong "nobody is told what is missing: $out"
    said "without options: $(echo "$out" | tail -n 1 | cut -c 1-90)…"
fi
options='--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined'
out=$(run $options $image exec -- echo sealed 2>/tmp/$name.err) || true
[ "$out" = sealed ] || wrong "no sandbox: $(head -n 2 /tmp/$name.err)"
rm -f /tmp/$name.err
said "exec in it: $out"
[ "$(run $options $image exec -- python3 -c 'print(6 * 7)')" = 42 ] || wrong "no Python in a sandbox"

# What it does when nothing is said: the gateway. It stops when it is asked.
docker run -d --name $name --network none $options $image >/dev/null
for _ in $(seq 150); do
    docker exec $name hermetic gateway status >/dev/null 2>&1 && ready=yes && break
    [ "$(docker inspect -f '{{.State.Running}}' $name)" = true ] || break
    sleep 0.2
done
[ -n "${ready:-}" ] || wrong "the gateway does not run: $(docker logs $name 2>&1 | tail -n 3)"
docker stop -t 30 $name >/dev/null
[ "$(docker inspect -f '{{.State.ExitCode}}' $name)" = 0 ] || wrong "the gateway was not stopped cleanly"
said "the gateway starts by itself and stops when asked"
