# Runs inside a sandbox. Each line it prints: what was tried, held|open|untried, a detail.
# PROXY is the proxy's port or empty, CLOSED_BY why then, ORIGIN the port of a listener on the host that knows the hellos.

say() { printf '%s\t%s\t%s\n' "$1" "$2" "$3"; }

connects() { timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null; }

no_way_to() {
  if connects "$2" "$3"; then say "$1" open "$2:$3 answers"; else say "$1" held "no connection to $2:$3"; fi
}

# The first line of the answer to some bytes; a second piece is sent when that line has come.
asks() {
  timeout 10 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$0" || exit 9
    printf "$1" >&3; IFS= read -r line <&3; printf "%s" "${line%$'"'\\r'"'}"
    [ -n "$2" ] && { printf "$2" >&3; head -c 7 <&3 >/dev/null; }
    exit 0' "$PROXY" "$1" "$2" 2>/dev/null
}

refused() {
  local answer; answer=$(asks "$2")
  case "$answer" in
    "") say "$1" untried "the proxy did not answer" ;;
    *" 200 "*) say "$1" open "$answer" ;;
    *) say "$1" held "$answer" ;;
  esac
}

connect() { printf 'CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' "$1" "$1"; }

# Nothing below is tried where a packet could leave.
routes=
if ! [ -r /proc/net/route ]; then say routes untried "the routes cannot be read"; exit; fi
while read -r name _; do
  [ "$name" = Iface ] || [ "$name" = lo ] || routes+=" $name"
done </proc/net/route
[ -r /proc/net/ipv6_route ] && while read -r line; do
  [ "${line##* }" = lo ] || routes+=" ${line##* }"
done </proc/net/ipv6_route
if [ -n "$routes" ]; then say routes open "packets can leave by$routes"; exit; fi
say routes held "loopback only"

no_way_to "example.com, directly" example.com 443
if command -v getent >/dev/null && getent ahosts example.com >/dev/null 2>&1; then
  say "name resolution" open "example.com has an address"
else
  say "name resolution" held "no name resolves"
fi
no_way_to "an address, directly" 192.0.2.1 443
no_way_to "an IPv6 address, directly" 2001:db8::1 443
no_way_to "cloud metadata, directly" 169.254.169.254 80
no_way_to "a container bridge's gateway" 172.17.0.1 80
no_way_to "the host's own loopback" 127.0.0.1 "$ORIGIN"

if [ -z "$PROXY" ]; then
  say "the proxy port" held "none: $CLOSED_BY"
  exit
fi
answer=$(asks 'GET /health HTTP/1.1\r\nHost: proxy\r\n\r\n')
case "$answer" in
  *" 200 "*) say "the proxy answers inside" held "$answer" ;;
  *) say "the proxy answers inside" untried "${answer:-no answer on port $PROXY}" ;;
esac
refused "a host no rule names" "$(connect unlisted.hermetic.invalid:443)"
refused "an address, by the proxy" "$(connect 192.0.2.1:443)"
refused "an address as one number, by the proxy" "$(connect 3221225985:443)"
refused "an IPv6 address, by the proxy" "$(connect '[2001:db8::1]:443')"
refused "cloud metadata, by the proxy" \
  'GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n'
refused "an allowed name with a private address" "$(connect "private.hermetic.invalid:$ORIGIN")"
asks "$(connect "allowed.hermetic.invalid:$ORIGIN")" "$WRONG_HELLO" >/dev/null
asks "$(connect "allowed.hermetic.invalid:$ORIGIN")" "$RIGHT_HELLO" >/dev/null
