# Sourced by the set-up scripts: installs missing packages on Debian and Ubuntu. Elsewhere, or without root, it names the packages
# and lets the build report missing ones.
millrace_packages="gcc make cmake ninja-build pkg-config libc6-dev liburing-dev libjpeg62-turbo-dev libspng-dev libdnnl-dev
libisal-dev libxxhash-dev libcjson-dev libcurl4-openssl-dev"
millrace_test_packages="libcmocka-dev shellcheck clang-format abigail-tools g++ binutils python3 python3-venv python3-pip ccache gdb libheif1"
millrace_tidy_packages="clang-tidy"
# A web server for the test of remote data. Debian starts it wherever it is installed, so only .ci/run asks for it.
millrace_server_package="nginx-light"
# Launchers for the test of runs in several processes; they bring services, too.
millrace_launcher_packages="openmpi-bin mpich slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge iproute2"

millrace_install() { # names...
    missing=""
    for package in "$@"; do
        [ "$package" = libjpeg62-turbo-dev ] && dpkg -s libjpeg-turbo8-dev >/dev/null 2>&1 && continue # Ubuntu's name
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    if ! command -v apt-get >/dev/null; then
        echo "not a Debian-like system; please install the equivalents of:$missing" >&2
        return 0
    fi
    root=""
    [ "$(id -u)" = 0 ] || root=sudo
    echo "installing:$missing" >&2
    # A network fails now and then, another program may hold the lock, and dpkg must not ask about a configuration file.
    # shellcheck disable=SC2086
    for attempt in 1 2 3; do
        $root apt-get update -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 &&
            DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends \
                -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold -o Acquire::Retries=3 \
                -o DPkg::Lock::Timeout=300 $missing >/dev/null && return 0
        [ "$attempt" = 3 ] || sleep 5
    done
    return 1
}
