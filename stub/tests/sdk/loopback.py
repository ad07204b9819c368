"""Brings up loopback in a new network namespace, and becomes the program that the arguments name."""

import fcntl
import os
import socket
import struct
import sys

SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
os.execv(sys.argv[1], sys.argv[1:])
