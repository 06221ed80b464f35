# Enters a root file system as a container is entered, with a whole /proc of its own: where a part of it is
# covered, a plain user gets no sandbox. Its namespaces go with it.
root=$1
shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs run
mount --rbind /dev dev
mkdir -p .outside
pivot_root . .outside
cd /
umount -l /.outside
rmdir /.outside
exec env -i LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
