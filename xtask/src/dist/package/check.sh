# What somebody does with the package, in a clean system without a network. The first thing that is
# not as it should be ends it.
version=$1
said() { echo "    $*"; }
wrong() { echo "wrong: $*" >&2; exit 1; }
home=/var/lib/hermetic/.hermes

before=$(dpkg-query -W -f '${Package}\n' | wc -l)
dpkg -i /hermetic.deb >/tmp/installed 2>&1 || { cat /tmp/installed >&2; wrong "it cannot be installed"; }
grep -q 'next: sudo hermetic setup' /tmp/installed || wrong "nobody is told what comes next"
[ "$(dpkg-query -W -f '${Package}\n' | wc -l)" = $((before + 1)) ] || wrong "more than one package"
[ -z "$(dpkg --verify hermetic | grep -v ' /usr/share/\(doc\|man\)/')" ] || wrong "files are not as they were packed"

# The program, and a sealed command as both kinds of user.
hermetic --version | tee /tmp/version
[ "$(cat /tmp/version)" = "hermetic ${version%~dev}" ] || wrong "another version"
for who in root hermetic; do
    out=$(runuser -u $who -- env HOME=/tmp/$who sh -c 'mkdir -p $HOME; hermetic exec -- echo sealed' 2>/tmp/err) || true
    [ "$out" = sealed ] || wrong "no sandbox as $who: $(head -n 1 /tmp/err)"
    said "exec as $who: $out"
done

# Who, where and what.
[ "$(getent passwd hermetic | cut -d: -f6,7)" = /var/lib/hermetic:/usr/sbin/nologin ] || wrong "the user"
[ "$(stat -c %U:%a /var/lib/hermetic $home $home/config.yaml | tr '\n' ' ')" = \
    'hermetic:700 hermetic:700 hermetic:600 ' ] || wrong "the home: $(ls -la /var/lib/hermetic $home)"
runuser -u hermetic -- env HOME=/var/lib/hermetic hermetic config check >/tmp/config || wrong "its configuration"
systemd-analyze verify /usr/lib/systemd/system/hermetic-gateway.service 2>&1 |
    grep -i 'hermetic' | grep -v 'Man.*exist' >/tmp/units || true
[ ! -s /tmp/units ] || wrong "the units: $(cat /tmp/units)"
[ -s /usr/share/man/man1/hermetic-exec.1.gz ] || [ -e /etc/dpkg/dpkg.cfg.d/excludes ] || wrong "no manual page"
[ -s /usr/share/bash-completion/completions/hermetic ] || wrong "no completion"
if [ -e /etc/apparmor.d/abi/4.0 ]; then
    apparmor_parser --skip-kernel-load --skip-cache /etc/apparmor.d/hermetic || wrong "the profile"
    said "the profile is understood by $(apparmor_parser --version | head -n 1)"
else
    [ ! -e /etc/apparmor.d/hermetic ] || wrong "a profile that this AppArmor does not understand"
fi

# Installed again over itself: what somebody wrote stays.
runuser -u hermetic -- sh -c "echo '# mine' >>$home/config.yaml"
dpkg -i /hermetic.deb >/tmp/again 2>&1 || wrong "it cannot be installed twice"
grep -q '# mine' $home/config.yaml || wrong "the configuration was replaced"

# Removed and purged after use: everything of the person's is left, and is said.
dpkg -r hermetic >/tmp/removed 2>&1 || wrong "it cannot be removed"
[ ! -e /usr/bin/hermetic ] && [ ! -e /etc/apparmor.d/hermetic ] || wrong "it was not removed"
dpkg -P hermetic >/tmp/purged 2>&1 || wrong "it cannot be purged"
[ -e $home/config.yaml ] && getent passwd hermetic >/dev/null || wrong "somebody's files were deleted"
grep -q '/var/lib/hermetic stays' /tmp/purged || wrong "nobody is told what is left"
said "after use, a purge leaves $home and says so"

# A link where the home was does not lead root anywhere.
rm -r /var/lib/hermetic
mkdir -m 700 /root/precious && echo mine >/root/precious/config.yaml
ln -s /root/precious /var/lib/hermetic
dpkg -i /hermetic.deb >/tmp/linked 2>&1 && wrong "a home that leads elsewhere was taken"
[ "$(cat /root/precious/config.yaml)" = mine ] && [ "$(stat -c %U:%a /root/precious)" = root:700 ] ||
    wrong "root's folder was touched"
rm /var/lib/hermetic

# Never used: nothing is left.
dpkg --configure hermetic >/tmp/configured 2>&1 || { cat /tmp/configured >&2; wrong "it cannot be set up"; }
dpkg -P hermetic >/tmp/purged 2>&1 || wrong "it cannot be purged"
[ ! -e /var/lib/hermetic ] || wrong "a home is left: $(find /var/lib/hermetic)"
getent passwd hermetic >/dev/null && wrong "the user is left"
left=$(find / -xdev -iname '*hermetic*' -not -path '/proc/*' -not -path '/tmp/*' -not -path '/var/log/*' -not -name hermetic.deb)
[ -z "$left" ] || wrong "left behind: $left"
said "unused, a purge leaves nothing"

# An upgrade from an older package: its home is taken on, and nobody is told to begin.
dpkg-deb -R /hermetic.deb /tmp/older
sed -i 's/^Version: .*/Version: 0.0.1~older/' /tmp/older/DEBIAN/control
printf '#!/bin/sh\necho hermetic 0.0.1\n' >/tmp/older/usr/bin/hermetic
rm -f /tmp/older/DEBIAN/md5sums
dpkg-deb -b /tmp/older /tmp/older.deb >/dev/null
dpkg -i /tmp/older.deb >/tmp/older.log 2>&1 || { cat /tmp/older.log >&2; wrong "the older one cannot be installed"; }
[ "$(hermetic --version)" = "hermetic 0.0.1" ] || wrong "it is not the older one"
runuser -u hermetic -- sh -c "echo '# mine' >>$home/config.yaml"
dpkg -i /hermetic.deb >/tmp/upgraded 2>&1 || { cat /tmp/upgraded >&2; wrong "it cannot be upgraded"; }
[ "$(hermetic --version)" = "hermetic ${version%~dev}" ] || wrong "the older one is still there"
grep -q '# mine' $home/config.yaml || wrong "an upgrade replaced the configuration"
grep -q 'next:' /tmp/upgraded && wrong "an upgrade tells how to begin"
[ "$(stat -c %U:%a $home/config.yaml)" = hermetic:600 ] || wrong "an upgrade changed whose the configuration is"
said "upgraded from an older package, with its home as it was"
dpkg -P hermetic >/tmp/purged 2>&1 || wrong "it cannot be purged"
rm -r /var/lib/hermetic /tmp/older /tmp/older.deb
userdel hermetic

# Somebody else's user of that name is left alone.
useradd --system --home-dir /srv/other hermetic
dpkg -i /hermetic.deb >/tmp/taken 2>&1 && wrong "somebody else's user was taken"
grep -q 'there is a user hermetic already' /tmp/taken || wrong "nobody is told why: $(cat /tmp/taken)"
dpkg -P hermetic >/tmp/purged 2>&1 || wrong "it cannot be purged: $(cat /tmp/purged)"
[ "$(getent passwd hermetic | cut -d: -f6)" = /srv/other ] || wrong "somebody else's user was touched"
said "somebody else's user of that name is left alone"
