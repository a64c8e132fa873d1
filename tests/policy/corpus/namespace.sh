#!/bin/sh
# Enters a root file system of its own, in memory, and runs the driver there. Run by `unshare`, never by hand.
# Nothing of the disk can be written: only the system's folders are seen, read-only. There is no network.
# usage: namespace.sh NEW_ROOT PROJECT_FOLDER DRIVER
set -e
new=$1 project=$2 driver=$3

mount -t tmpfs -o size=400m none "$new"
mkdir -p "$new/usr" "$new/etc" "$new/dev" "$new/proc" "$new/tmp" "$new/srv" "$new/old" "$new/root"
cp -a "$project" "$new/srv/template"
cp "$driver" "$new/srv/driver.py"
mount --rbind -o ro /usr "$new/usr"
mount -o remount,bind,ro "$new/usr"
for name in bin sbin lib lib32 lib64; do
    if [ -L "/$name" ]; then
        cp -P "/$name" "$new/$name"
    elif [ -d "/$name" ]; then
        mkdir "$new/$name"
        mount --rbind "/$name" "$new/$name"
        mount -o remount,bind,ro "$new/$name"
    fi
done
for name in alternatives ld.so.cache ld.so.conf passwd group nsswitch.conf; do
    [ -e "/etc/$name" ] && cp -aL "/etc/$name" "$new/etc/$name"
done
echo example > "$new/etc/hostname"
for name in null zero random urandom; do
    touch "$new/dev/$name"
    mount --bind "/dev/$name" "$new/dev/$name"
done
ln -s /proc/self/fd "$new/dev/fd"
ln -s /proc/self/fd/0 "$new/dev/stdin"
ln -s /proc/self/fd/1 "$new/dev/stdout"
ln -s /proc/self/fd/2 "$new/dev/stderr"
mkdir "$new/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$new/dev/pts" 2> /dev/null && ln -s pts/ptmx "$new/dev/ptmx"
mount -t proc proc "$new/proc"
cd "$new"
pivot_root . old
umount -l /old
exec /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 python3 /srv/driver.py
