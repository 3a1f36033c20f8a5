# Data sets on a real web server (nginx, started here on a port of its own): every format yields the same as the local files;
# servers that are slow, go away and come back; a tiny cache; damage on the disk; https with a certificate nobody vouches for.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh"
nginx=$(command -v nginx || echo /usr/sbin/nginx)
[ -x "$nginx" ] || { echo "SKIP: nginx is not installed (Debian and Ubuntu: apt install nginx-light)"; exit 77; }
unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$temp"' EXIT
mkdir -p web server/tmp

# serve: nginx in the foreground of a child process; fails when the port is taken. Only this nginx answers 410 to a name known to it alone,
# which distinguishes it from another server on the port.
configuration() {
    cat <<CONF
daemon off;
master_process off;
pid "$temp/server/pid";
error_log "$temp/server/error.log";
events { worker_connections 256; }
http {
    access_log "$temp/server/access.log";
    client_body_temp_path "$temp/server/tmp"; proxy_temp_path "$temp/server/tmp"; fastcgi_temp_path "$temp/server/tmp";
    uwsgi_temp_path "$temp/server/tmp"; scgi_temp_path "$temp/server/tmp";
    default_type application/octet-stream;
    server {
        listen 127.0.0.1:$1;
        root "$temp/web";
        location /known-$$ { return 410; }
        location /slow/ { alias "$temp/web/"; limit_rate 1500k; }
        location /slower/ { alias "$temp/web/"; limit_rate $rate; }
        location /stalled/ { alias "$temp/web/"; limit_rate 200; }
        location /moved/ { rewrite ^/moved/(.*)\$ /\$1 redirect; }
        location /closed/ { return 403; }
        location /bare/ { alias "$temp/bare/"; etag off; if_modified_since off; add_header Last-Modified ""; }
        location /whole/ { alias "$temp/web/"; max_ranges 0; }
        location ~ ^/private/.*labels { return 403; }
        location /private/ { alias "$temp/web/"; }
    }
$2
}
CONF
}
serve() {
    configuration "$port" "$https" >server/nginx.conf
    "$nginx" -p "$temp/server" -c "$temp/server/nginx.conf" 2>server/start.log &
    pid=$!
    while runs "$pid"; do
        "$millrace" inspect "http://127.0.0.1:$port/known-$$" >out 2>err
        grep -q "answers 410" err && return 0
        sleep 0.1
    done
    wait "$pid"
    pid=
    return 1
}
unserve() {
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pid=
}

MILLRACE_REMOTE=tries=8,backoff-ms=100,stall-s=2
export MILLRACE_REMOTE
"$millrace" inspect http://127.0.0.1:1/x >out 2>err
if grep -q "libcurl" err; then
    echo "skipped: $(cat err)"
    exit 77
fi
err_has "http://127.0.0.1:1/x" # it was asked for, and nobody is there

# Ports below the kernel's ephemeral ports (32768 and up).
another_port() { echo $((20000 + ($1 - 20000 + 101) % 12000)); }
https='' rate=100k
port=$((20000 + $$ % 12000))
tries=0
until serve; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] && grep -q "Address already in use" server/start.log || { cat server/start.log; fail "nginx does not start"; finish; }
    port=$(another_port "$port")
done
url=http://127.0.0.1:$port

# ---- every format: the same digest from the server as from the files, twice: the second time from the cache ----
run 0 synth pictures --count 300 --quiet
run 0 convert pictures web/train.mrec --quiet
run 0 convert pictures web/shards.mrec --shard-size 1M --quiet
mkdir tarred
at=0
for picture in pictures/train/*/*.jpg; do
    at=$((at + 1))
    [ $at -le 200 ] || break
    cp "$picture" tarred/$at.jpg
    printf '%d' $((at % 10)) >tarred/$at.cls
done
# members of one sample are neighbours: no name here has anything a shell would split
# shellcheck disable=SC2046 # a name each
(cd tarred && tar -cf ../web/set-000.tar $(printf '%s\n' 1*.* | sort) && tar -cf ../web/set-001.tar $(printf '%s\n' 2*.* | sort))
cp web/set-000.tar web/piece-00000-of-00002
cp web/set-001.tar web/piece-00001-of-00002
npy() { # FILE DICTIONARY: the head of an array, 128 bytes
    printf '\223NUMPY\001\000\166\000%-117s\n' "$2" >"$1"
}
npy web/x_set.npy "{'descr': '|u1', 'fortran_order': False, 'shape': (64, 8, 8, 3), }"
head -c 12288 web/train.mrec >>web/x_set.npy
npy web/y_set.npy "{'descr': '|u1', 'fortran_order': False, 'shape': (64,), }"
head -c 64 /dev/zero >>web/y_set.npy

run 0 convert web/train.mrec web/train --to tfrecord --shard-size 200K --quiet # train-00000-of-...
sets=$(ls web | sed -n 's/^train-00000-of-\(.*\)$/\1/p')
[ -n "$sets" ] || fail "no shards of TFRecords"
# shellcheck disable=SC2059 # the octal escapes are the format
be32() { for byte in 0 0 "$1" "$2"; do printf "\\$(printf %03o "$byte")"; done; }
{ printf '\000\000\010\003' && be32 0 40 && be32 0 8 && be32 0 8 && head -c 2560 web/train.mrec; } >web/t-images-idx3-ubyte
{ printf '\000\000\010\001' && be32 0 40 && head -c 40 /dev/zero; } >web/t-labels-idx1-ubyte

digest() { # SOURCE OPTION...: the digest alone
    last="millrace digest $*"
    "$millrace" digest "$@" --quiet >out 2>err || fail "$last: expected exit status 0" >&2
    cut -d ' ' -f 1 out
}
compare() { # NAME PATH-ON-THE-SERVER
    expected=$(digest "web/$1")
    [ ${#expected} -eq 32 ] || fail "no digest of web/$1"
    equal "$(digest "$url/$2")" "$expected"
    equal "$(digest "$url/$2")" "$expected"
}
compare train.mrec train.mrec
compare shards.mrec shards.mrec
compare set-000.tar set-000.tar
compare 'set-{000..001}.tar' 'set-{000..001}.tar'
compare piece-00000-of-00002 piece-00000-of-00002
compare "train-00000-of-$sets" "train-00000-of-$sets"
compare t-images-idx3-ubyte t-images-idx3-ubyte
compare x_set.npy x_set.npy
compare x_set.npy private/x_set.npy # a store that answers 403 for missing names
compare train.mrec moved/train.mrec
compare train.mrec whole/train.mrec
expected=$(digest web/train.mrec --prefetch off --workers 1)
equal "$(digest "$url/train.mrec" --prefetch off)" "$expected"
equal "$(digest "$url/train.mrec" --workers 3 --readers 3 --depth 4 --remote-cache "$temp/other")" "$expected"
run 0 convert "$url/train.mrec" again.mrec --quiet
run 0 inspect "$url/train.mrec"
out_has "300"
run 0 verify "$url/shards.mrec" --quiet
out_has "0 wrong"
# a mix of a local set, a set fetched as it is read, and a set fetched whole; a mix that itself is remote is refused
printf 'millrace mix 1\n1 pictures\n2 web/shards.mrec\n1 web/train-00000-of-%s\n' "$sets" >near.txt
sed "s|web/|$url/|" near.txt >far.txt
mixed=$(digest near.txt)
equal "$(digest far.txt)" "$mixed"
equal "$(digest far.txt --prefetch off)" "$mixed"
cp near.txt web/near.txt
run 1 inspect "$url/near.txt"; err_has "near.txt: a mix is read from a file here"

# ---- a server without versions, and other content of the same size between two runs: the second run gets no byte of the first ----
mkdir bare
# shellcheck disable=SC2046 # a name each
(cd tarred && tar -cf ../first.tar $(printf '%s\n' 1*.* | sort) && tar -cf ../second.tar $(printf '%s\n' 1*.* | sort -r))
equal "$(wc -c <first.tar)" "$(wc -c <second.tar)"
for round in first second first; do
    cp $round.tar bare/x.tar
    of_files=$(digest $round.tar)
    equal "$(digest "$url/bare/x.tar" --remote-cache "$temp/bare-cache")" "$of_files"
    err_has "of this file the server sends no version that identifies its bytes"
    err_has "fetched whole in one answer, and kept for this run only"
done
[ "$(digest first.tar)" != "$(digest second.tar)" ] || fail "both archives have the same digest"

# ---- what may be secret in an address is in no report ----
secret="http://me:password@127.0.0.1:$port/train.mrec?key=hidden"
for words in inspect "inspect --bad" verify digest "convert --force" "export --force"; do
    to=
    [ "${words#convert}" = "$words" ] || to=again.mrec
    [ "${words#export}" = "$words" ] || { to=exported; rm -rf exported; words="export"; }
    # shellcheck disable=SC2086 # two words
    run 0 $words "$secret" $to --json
    ! grep -q "password\|hidden" out err || fail "$last: a secret is printed"
    out_has "127.0.0.1:$port/train.mrec?..."
done

# ---- a tiny cache: the files stay below its limit, and the bytes are the same ----
equal "$(digest "$url/train.mrec" --epochs 1 --remote-cache "$temp/tiny" --remote-size 3M --resident 0 --depth 2)" "$expected"
used=$(du -sk tiny | cut -f 1)
[ "$used" -le 3400 ] || fail "a cache of 3 MiB takes $used KiB" # a tenth for the file system's own blocks
run 1 digest "$url/set-000.tar" --remote-cache "$temp/tinier" --remote-size 4K
err_has "allow more"

# ---- damage on the disk is fetched again ----
for data in cache-home/millrace/remote/*.data; do
    printf 'x' | dd of="$data" bs=1 seek=5000 conv=notrunc 2>/dev/null
done
equal "$(digest "$url/train.mrec")" "$expected"

# ---- requests that the server refuses ----
run 1 inspect "$url/missing.mrec"
err_has "$url/missing.mrec: "
err_has "answers 404"
run 1 inspect "$url/closed/x.mrec"
err_has "answers 403"
run 2 inspect "$url/a name.tar"
err_has "a space in a URL: write %20"
run 1 inspect "$url/"
err_has "folders cannot be listed over http"
run 1 inspect "$url/set-*.tar"
err_has "folders cannot be listed over http"
run 1 inspect "http://me:secret@127.0.0.1:$port/missing.mrec?key=hidden"
err_has "127.0.0.1:$port/missing.mrec?..."
! grep -q "secret\|hidden" err || fail "$last: a secret is printed"
printf 'file,label\na.jpg,1\nb.jpg,2\n' >web/list.csv
run 1 inspect "$url/list.csv"
rm web/shards-00001-of-* 2>/dev/null || rm "$(sed -n '4s/^[0-9]* [0-9]* [0-9a-f]* /web\//p' web/shards.mrec)"
run 1 digest "$url/shards.mrec"
err_has "answers 404"

# ---- slow; gone in the middle and back ----
equal "$(digest "$url/slow/train.mrec" --remote-cache "$temp/slow")" "$expected"
"$millrace" digest "$url/slower/train.mrec" --remote-cache "$temp/gone" --quiet >gone.out 2>gone.err & reader=$!
shows $reader /slower/train.mrec server/access.log || fail "nothing was asked for: $(cat gone.err)" # the file's size; its bytes come now
unserve
rate=0 # no limit
serve || fail "nginx does not start again"
wait $reader || fail "a server that was gone for a moment: $(cat gone.err)"
equal "$(cut -d ' ' -f 1 gone.out)" "$expected"

# ---- Ctrl-C while nothing comes ----
(MILLRACE_REMOTE=stall-s=100 exec "$millrace" digest "$url/stalled/train.mrec" --remote-cache "$temp/stalled" --quiet >out 2>err) & reader=$!
listens $reader
shows $reader /stalled/train.mrec server/access.log || fail "nothing was asked for: $(cat err)"
kill -INT $reader
wait $reader
equal $? 130
err_has "stopped by signal 2"

# ---- https ----
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout server/key -out server/certificate -days 2 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    unserve
    secure=$port
    tries=0
    while [ -z "$pid" ] && [ $tries -lt 50 ]; do
        tries=$((tries + 1))
        secure=$(another_port "$secure")
        https="server { listen 127.0.0.1:$secure ssl; ssl_certificate \"$temp/server/certificate\";
                        ssl_certificate_key \"$temp/server/key\"; root \"$temp/web\"; }"
        serve || grep -q "Address already in use" server/start.log || break
    done
    if [ -n "$pid" ]; then
        run 1 inspect "https://127.0.0.1:$secure/train.mrec"
        err_has "certificate"
        SSL_CERT_FILE=$temp/server/certificate
        export SSL_CERT_FILE
        equal "$(digest "https://127.0.0.1:$secure/train.mrec")" "$expected"
    else
        echo "https is not tested: $(cat server/start.log)"
    fi
fi

# ---- no server: whether the cache is current cannot be known ----
unserve
MILLRACE_REMOTE=tries=2,backoff-ms=10,stall-s=1
run 1 inspect "$url/train.mrec"
err_has "gave up after 2 tries"
finish
