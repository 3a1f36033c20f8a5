"""What ranks say to each other as bytes (ranks/wire.h, ranks/seal.h), for tests that play a rank or somebody who would like to be one."""

import hashlib
import hmac
import os
import random
import socket
import struct

VERSION = 4
(HELLO, WELCOME, CARD, OTHER, REFUSED, ROSTER, JOIN, JOINED, DONE, FAILED, GO, BEAT, FAREWELL, BLAME, MUSTER, MUSTERED, CALL, KNOCK,
 CHALLENGE, PROOF, PROVED) = range(1, 22)


def message(kind, data=b"", version=VERSION, size=None):
    return struct.pack("<IHHI", 0x7752724D, version, kind, len(data) if size is None else size) + data


def text(s):
    return struct.pack("<H", len(s)) + s.encode()


def siphash(k0, k1, data):
    mask = (1 << 64) - 1
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn(x, bits):
        return (x << bits | x >> 64 - bits) & mask

    def rounds(n):
        for _ in range(n):
            v[0], v[2] = (v[0] + v[1]) & mask, (v[2] + v[3]) & mask
            v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
            v[0] = turn(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
            v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
            v[2] = turn(v[2], 32)

    padded = data + b"\0" * (7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def job_key(*names):
    key = (0, 0)
    for name in names:
        key = (siphash(key[0], 0x6D696C6C72616365, name.encode()), siphash(key[1], 0x6B65797377697265, name.encode()))
    return struct.pack("<QQ", *key)


def muster(key, progress=0, run=bytes(16), port=40000):
    return key + struct.pack("<Q16sQIH", random.getrandbits(63), run, progress, 2, port) + text("stranger")


def hello(key, rank, size):
    return key + struct.pack("<QIIH", random.getrandbits(63), rank, size, 40001) + text("stranger")


def tag(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


class Guest:
    """One that knows a secret, and may misuse it."""

    def __init__(self, port, secret):
        self.sock, self.sent = connect(port), b""
        self.key = tag(b"millrace ranks 2".ljust(32, b"\0"), secret.encode())
        self.nonce, self.count = os.urandom(16), 0

    def say(self, data):
        self.sent += data
        self.sock.sendall(data)

    def of(self, label):
        return tag(self.key, label.ljust(16, b"\0") + self.nonce + self.challenge)

    def hear(self):
        head = receive(self.sock, 12)
        kind, size = struct.unpack("<4xxxHI", head) if len(head) == 12 else (0, 0)
        return kind, receive(self.sock, size)

    def knock(self):
        self.say(message(KNOCK, self.nonce))
        kind, self.challenge = self.hear()
        return kind == CHALLENGE

    def prove(self):
        if not self.knock():
            return False
        self.say(message(PROOF, self.of(b"guest proves")))
        kind, proof = self.hear()
        return kind == PROVED and proof == self.of(b"host proves")

    def sealed(self, kind, data, label=b"guest says"):
        whole = message(kind, data, size=len(data) + 16)
        self.count += 1
        return whole + tag(self.of(label), whole + struct.pack("<Q", self.count - 1))[:16]


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.settimeout(10)
    return s


def receive(s, size):
    got = b""
    while len(got) < size:
        try:
            more = s.recv(size - len(got))
        except OSError:
            break
        if not more:
            break
        got += more
    return got


def until_closed(s):
    """The other end has read all, and said all it has to say."""
    while receive(s, 4096):
        pass
    s.close()


def port_is_open(port):
    try:
        connect(port).close()
        return True
    except OSError:
        return False
