#!/bin/sh
# A bare machine of another Debian, laid over this one as a container lays it: a root made by debootstrap below an overlay that is
# thrown away afterwards, with /dev, /proc, /dev/shm and terminals of its own, sysfs read-only and an empty environment.
#
# usage: machine.sh root DIR SUITE           make the root DIR once (about a minute, 250 MB); SUITE: bookworm, trixie, sid
#        machine.sh run ROOT COMMAND         run COMMAND in a clone of this checkout in such a machine; exit status: the command's
#        machine.sh layer DIR ROOT COMMAND   keep in DIR what COMMAND changes in ROOT outside the checkout; made again when COMMAND, ROOT or
#                                            KEY changes. The root of run is then DIR:ROOT
# Settings of run, from the environment:
#   MACHINE_USER=NAME    COMMAND runs as this user; MACHINE_ROOT_FIRST runs as root before it
#   MACHINE_ROOT_FIRST=COMMAND
#   MACHINE_ENV="A=b ..." instead of HOME and LANG=C.UTF-8
#   MACHINE_PREFIX="..." words in front of the command that enters the machine, such as taskset -c 0, or
#                        sh machine.sh join GROUP: a control group
#   MACHINE_NO_SHM=1     no /dev/shm
#   MACHINE_READ_ONLY=1  the checkout is read-only
#   MACHINE_CACHE=DIR    a folder of compiled objects (ccache), kept between runs
#   MACHINE_FILES=DIR    a folder that COMMAND sees at /home/millrace/files, read-only
# Needs root, unshare, mount and overlayfs; exit status 77 where they are missing.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)

skip() {
    echo "SKIP: $*"
    exit 77
}

# Package sources, proxies and certificates of this machine, for another suite.
copy_sources() { # ROOT SUITE MIRROR
    rm -f "$1/etc/apt/sources.list" "$1"/etc/apt/sources.list.d/*
    if [ "$2" = sid ]; then
        printf 'deb %s sid main\n' "$3" >"$1/etc/apt/sources.list"
    else
        for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
            [ ! -f "$file" ] || sed "s/bookworm/$2/g" "$file" >"$1$file"
        done
    fi
    cp -r /etc/apt/apt.conf.d/. "$1/etc/apt/apt.conf.d/" 2>/dev/null || true
    mkdir -p "$1/etc/ssl/certs" "$1/usr/local/share/ca-certificates"
    cp -r /etc/ssl/certs/. "$1/etc/ssl/certs/" 2>/dev/null || true
    cp -rL /usr/local/share/ca-certificates/. "$1/usr/local/share/ca-certificates/" 2>/dev/null || true
    cp /etc/resolv.conf /etc/hosts "$1/etc/" 2>/dev/null || true
}

make_root() { # DIR SUITE
    [ ! -e "$1/.complete" ] || return 0
    [ "$(id -u)" = 0 ] || skip "a root for $2 is made by root"
    command -v debootstrap >/dev/null || skip "debootstrap is not installed"
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        awk '/^deb /{for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}} /^URIs:/{print $2; exit}')
    [ -n "$mirror" ] || skip "no package source is configured here"
    rm -rf "$1"
    mkdir -p "$1"
    debootstrap --variant=minbase --include=ca-certificates "$2" "$1" "$mirror" >"$1.log" 2>&1 || {
        tail -3 "$1.log"
        skip "debootstrap could not make $2"
    }
    copy_sources "$1" "$2" "$mirror"
    : >"$1/.complete"
}

# In a mount namespace of its own, so that every mount ends with it.
lay() { # ROOT TOP
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/up,workdir=$2/work" "$2/top" || skip "overlayfs cannot be mounted here"
    top=$2/top
    mount -t proc proc "$top/proc"
    mount -t sysfs -o ro sysfs "$top/sys"
    mount -t tmpfs -o mode=755 dev "$top/dev"
    mkdir "$top/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$top/dev/pts"
    [ -n "${MACHINE_NO_SHM-}" ] || { mkdir "$top/dev/shm"; mount -t tmpfs -o mode=1777 shm "$top/dev/shm"; }
    for node in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "$top/dev/${node%:*}" c 1 "${node#*:}"; done
    mknod -m 666 "$top/dev/tty" c 5 0
    ln -s pts/ptmx "$top/dev/ptmx"
    ln -s /proc/self/fd "$top/dev/fd"
    for stream in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${stream%:*}" "$top/dev/${stream#*:}"; done
}

enter() { # USER PREFIX COMMAND
    user=$1 prefix=$2
    shift 2
    environment=${MACHINE_ENV-"HOME=/home/millrace LANG=C.UTF-8"}
    [ -z "${MACHINE_CACHE-}" ] || environment="$environment CCACHE_DIR=/ccache"
    # shellcheck disable=SC2086 # lists of words
    $prefix "$(command -v chroot)" ${user:+--userspec="$user"} "$top" \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $environment \
        sh -c "cd /home/millrace/checkout && $*" </dev/null
}

run_in() { # ROOT COMMAND
    root=$1
    shift
    scratch=$(mktemp -d "${place:-${TMPDIR:-/tmp}}/millrace-machine-XXXXXX")
    trap 'rm -rf --one-file-system "$scratch"' EXIT
    trap 'exit 130' INT TERM
    mkdir "$scratch/up" "$scratch/work" "$scratch/top"
    status=0
    unshare --mount --propagation private sh "$0" in "$scratch" "$root" "$*" || status=$?
    [ "$status" != 0 ] || [ -z "${kept_in-}" ] || keep_layer "$scratch/up"
    exit "$status"
}

keep_layer() { # UPPER
    rm -rf "$1/home/millrace"
    mv -T "$1" "$kept_in"
    printf '%s\n' "$key" >"$kept_in.key"
}

make_layer() { # DIR ROOT COMMAND
    key="$(stat -c %Y "$2/.complete") ${KEY-} $3"
    [ "$(cat "$1.key" 2>/dev/null)" != "$key" ] || return 0
    rm -rf "$1" "$1.key"
    kept_in=$1
    place=$(dirname "$1")
    run_in "$2" "$3"
}

inside() { # SCRATCH ROOT COMMAND
    scratch=$1
    lay "$2" "$scratch"
    mkdir -p "$top/home/millrace"
    git clone -q "$here" "$top/home/millrace/checkout"
    if [ -n "${MACHINE_CACHE-}" ]; then
        mkdir -p "$MACHINE_CACHE" "$top/ccache"
        chmod 1777 "$MACHINE_CACHE"
        mount --bind "$MACHINE_CACHE" "$top/ccache"
    fi
    if [ -n "${MACHINE_FILES-}" ]; then
        mkdir "$top/home/millrace/files"
        mount --bind "$MACHINE_FILES" "$top/home/millrace/files"
        mount -o remount,bind,ro "$top/home/millrace/files"
    fi
    [ -z "${MACHINE_ROOT_FIRST-}" ] || enter "" "" "$MACHINE_ROOT_FIRST" || exit
    [ -z "${MACHINE_USER-}" ] || chown -R "$MACHINE_USER" "$top/home/millrace"
    if [ -n "${MACHINE_READ_ONLY-}" ]; then
        mount --bind "$top/home/millrace/checkout" "$top/home/millrace/checkout"
        mount -o remount,bind,ro "$top/home/millrace/checkout"
    fi
    enter "${MACHINE_USER-}" "${MACHINE_PREFIX-}" "$3"
}

case ${1-} in
join)
    group=$2
    shift 2
    echo $$ >"$group/cgroup.procs"
    exec "$@"
    ;;
root) make_root "$2" "$3" ;;
run | layer)
    [ "$(id -u)" = 0 ] || skip "another machine is laid by root"
    command -v unshare >/dev/null || skip "unshare is not installed"
    what=$1
    shift
    if [ "$what" = run ]; then
        run_in "$@"
    else
        make_layer "$@"
    fi
    ;;
in)
    shift
    inside "$@"
    ;;
*)
    sed -n '2,20s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
