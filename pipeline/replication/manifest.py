"""This module keeps the manifest of a store: it says which objects make up the data directory, and which server
writes them (docs/decisions/0042).

Manifests are numbered, and each is created only where there is none of its number. A server that starts creates the
next one, its *claim*: so the next manifest of the server before it is refused. The object of a claim stays, so that
an earlier server never finds its number free again. Other manifests go, so a server that was paused after its look
may find a number free that was taken: a claim counts only as the newest manifest. One that others have followed
stays, too: otherwise the earlier server would find its number free.

A manifest ends with a seal: its number, the digest of the manifest before it, and that of all bytes so far.
"""

import re
import struct
import zlib
from secrets import token_hex

import msgspec

from epsparql.deferred_methods import dataclass
from pipeline.errors import StoreDamaged, StoreFailed, StoreTaken
from pipeline.log.segments import digest_of
from pipeline.object_store.backends import ObjectStore

MANIFESTS, TAIL, OBJECTS = "manifests", "tail", "objects"
LOG, SOLUTIONS = LOGS = "log", "solutions"
_TRIES = 10
"""A listed manifest may have been removed before it is read, and then there is a later one: a look is tried this often."""
_SEAL = re.compile(rb',"number":(\d+),"follows":"([0-9a-f]*)","digest":"([0-9a-f]+)"\}\Z')
_PIECE = struct.Struct("<8sQQI")  # the server's start, the segment, the byte in it, the checksum of what follows


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """Represents the bytes [begin, end) of a segment; they lie in an object, from its byte `offset` on.

    `crc` is of the whole object.
    """

    segment: int
    begin: int
    end: int
    name: str
    crc: int
    offset: int = 0

    def read(self, store: ObjectStore) -> bytes:
        """Return the bytes. Raises: StoreFailed where the object is damaged, or has gone."""
        data = read_object(store, self.name, self.crc)
        if data is None:
            raise StoreDamaged(str(store), f"the object {self.name} is missing")
        return data[self.offset : self.offset + self.end - self.begin]


class StoredFile(msgspec.Struct, frozen=True, array_like=True):
    """Names the object that holds a small file, with its checksum."""

    name: str
    crc: int


class Manifest(msgspec.Struct, frozen=True):
    """Says what makes up a data directory.

    The log goes on in the tail's pieces from number `tail` on. `start` names the process that wrote this, and `epoch`
    is the number of its claim.
    """

    server: str = ""
    """A data directory has this name for itself."""
    start: str = ""
    epoch: int = 0
    tail: int = 0
    logs: dict[str, list[Extent]] = {}  # msgspec copies a default
    files: dict[str, StoredFile] = {}
    claims: list[int] = []
    """These manifests are claims."""
    fences: list[int] = []
    """These pieces of the tail are fences."""

    def objects(self) -> set[str]:
        """Return the names of the objects that it counts on."""
        return {each.name for extents in self.logs.values() for each in extents} | {each.name for each in self.files.values()}


def read_object(store: ObjectStore, name: str, crc: int) -> bytes | None:
    """Return an object's bytes, or None where it has gone. Raises: StoreFailed where it is damaged."""
    data = store.read(name)
    if data is not None and zlib.crc32(data) != crc:
        raise StoreDamaged(str(store), f"the checksum of the object {name} does not hold")
    return data


def new_name() -> str:
    """Return a name for a server that has none yet."""
    return token_hex(8)


def manifest_name(number: int) -> str:
    return f"{MANIFESTS}/{number:020d}"


class ManifestChain:
    """Reads and writes the manifests of a store, for one process; one thread at a time writes."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.start = token_hex(4)
        self.number = 0
        """The newest manifest that is known has this number; there is none yet where it is 0."""
        self.newest: Manifest | None = None
        self._follows = ""  # the digest of the newest manifest
        self._unsure = False  # the last try to create one may have taken effect

    def look(self) -> Manifest | None:
        """Read the newest manifest; None where there is none. Raises: StoreFailed."""
        name = ""
        for _ in range(_TRIES):
            names = self._store.names(MANIFESTS)
            if not names:
                self._check_empty()
                return None
            name = f"{MANIFESTS}/{names[-1]}"
            if data := self._store.read(name):  # else there is a newer one
                found, follows = self._decode(name, data)
                self._check_before(name, names[-2:-1], follows)
                self.number, self.newest, self._follows = int(names[-1]), found, digest_of(data)
                return found
        if self._store.read(name) == b"":  # a claim is emptied after another manifest has followed it
            raise StoreDamaged(str(self._store), f"a manifest that follows {name} is missing")
        raise StoreFailed("manifests follow each other faster than they can be read")

    def _check_empty(self) -> None:
        """Check that a store without manifests has nothing else: the first claim comes before all objects.

        Raises: StoreFailed.
        """
        for folder in (TAIL, OBJECTS):
            if self._store.names(folder) and not self._store.names(MANIFESTS):  # else another server has begun meanwhile
                raise StoreDamaged(str(self._store), f"it has objects in {folder}/, and all manifests are missing")

    def _check_before(self, name: str, before: list[str], follows: str) -> None:
        """Check that a manifest follows the one before it, if that is still there. Raises: StoreFailed."""
        for each in before if follows else ():
            data = self._store.read(f"{MANIFESTS}/{each}") if manifest_name(int(each) + 1) == name else None
            if data and digest_of(data) != follows:
                raise StoreDamaged(str(self._store), f"the object {name} does not follow {MANIFESTS}/{each}")

    def claim(self, server: str, before: Manifest, number: int) -> None:
        """Take the store over as `before` says it stands, by the manifest of that number.

        It goes on under the name of the earlier server, which can start again, until this one commits. Raises:
        StoreTaken if another server does so at this moment, or has written since `before`; StoreFailed.
        """
        self.number = number - 1
        claims, epoch = [*before.claims, number], before.epoch or number
        claim = msgspec.structs.replace(before, server=before.server or server, start=self.start, epoch=epoch, claims=claims)
        self._create(claim)
        newest = self.look()
        if newest is None or newest.start != self.start:
            if newest is not None and number not in newest.claims:  # the number was free again: `before` was read long ago
                self._store.remove(manifest_name(number))
            raise StoreTaken(str(self._store), "another server has begun to write to")
        if self._store.create(manifest_name(number), b""):
            raise StoreFailed("it lets an object be written twice, so two servers could both write; it has to refuse that (If-None-Match)")

    def commit(self, manifest: Manifest) -> None:
        """Write the next manifest, unless nothing has changed; see in any case that no later server has come.

        Raises: StoreTaken, StoreFailed.
        """
        if manifest == self.newest and not self._unsure:
            self.check_newest()
            return
        before = self.number
        self._create(manifest)
        if before in manifest.claims:
            self._store.put(manifest_name(before), b"")
        elif before:
            self._store.remove(manifest_name(before))

    def check_newest(self) -> None:
        """Check that no later server has come. Raises: StoreTaken if one has; StoreFailed."""
        found = self._store.read(manifest_name(self.number + 1))
        if found is not None and self._decode(manifest_name(self.number + 1), found)[0].start != self.start:
            raise StoreTaken(str(self._store), "another server has begun to write to")

    def sweep(self) -> None:
        """Remove earlier manifests that were left behind. Raises: StoreFailed."""
        assert self.newest is not None
        for name in self._store.names(MANIFESTS):
            if int(name) < self.number and int(name) not in self.newest.claims:
                self._store.remove(f"{MANIFESTS}/{name}")

    def _create(self, manifest: Manifest) -> None:
        self._unsure = True
        created = False
        while not created:
            name = manifest_name(self.number + 1)
            data = _seal(manifest, self.number + 1, self._follows)
            created = self._store.create(name, data)
            if not created:
                found = self._store.read(name)
                if not found or self._decode(name, found)[0].start != self.start:
                    raise StoreTaken(str(self._store), "another server has begun to write to")
                created, data = found == data, found  # by an earlier try
            self.number += 1
            self._follows = digest_of(data)
        self.newest, self._unsure = manifest, False

    def _decode(self, name: str, data: bytes) -> tuple[Manifest, str]:
        """Return a manifest, and the digest of the one that it follows; empty for a manifest of before these were
        sealed. Raises: StoreDamaged.
        """
        if not data:
            return Manifest(), ""
        try:
            found = msgspec.json.decode(data, type=Manifest)
        except msgspec.MsgspecError as fault:
            raise StoreDamaged(str(self._store), f"the object {name} cannot be read ({fault})") from None
        seal = _SEAL.search(data)
        if seal is None and not (found.server and found.start and found.epoch):
            raise StoreDamaged(str(self._store), f"the object {name} is no manifest")
        if seal is not None and (digest_of(data[: seal.start(3)]) != seal[3].decode() or manifest_name(int(seal[1])) != name):
            raise StoreDamaged(str(self._store), f"the digest of the object {name} does not hold, or it is another manifest")
        return found, "" if seal is None else seal[2].decode()


def _seal(manifest: Manifest, number: int, follows: str) -> bytes:
    """Return the bytes of a manifest, which earlier versions can read as well."""
    sealed = msgspec.json.encode(manifest)[:-1] + b',"number":%d,"follows":"%s","digest":"' % (number, follows.encode())
    return b'%s%s"}' % (sealed, digest_of(sealed).encode())


# ---------------------------------------------------------------- the tail
@dataclass(frozen=True, slots=True)
class Piece:
    """Represents an object of the tail: an extent of the log, or a fence, which has none."""

    start: str
    extent: Extent | None
    data: bytes


def tail_name(number: int) -> str:
    return f"{TAIL}/{number:020d}"


def read_piece(store: ObjectStore, number: int) -> Piece | None:
    """Return a piece of the tail, or None where there is none of that number. Raises: StoreFailed where it is damaged."""
    found = store.read(tail_name(number))
    if found is None:
        return None
    if len(found) >= _PIECE.size:
        start, segment, begin, crc = _PIECE.unpack_from(found)
        data = found[_PIECE.size :]
        if zlib.crc32(data) == crc:
            extent = Extent(segment, begin, begin + len(data), tail_name(number), zlib.crc32(found), _PIECE.size) if data else None
            return Piece(start.decode(), extent, data)
    raise StoreDamaged(str(store), f"the checksum of the object {tail_name(number)} does not hold")


def check_tail(store: ObjectStore, begin: int) -> None:
    """Check that no piece is missing between those from number `begin` on: what follows a gap would be read by nobody.

    Raises: StoreFailed.
    """
    numbers = (int(name) for name in store.names(TAIL) if name.isdecimal() and int(name) >= begin)
    for expected, number in enumerate(sorted(numbers), begin):
        if number != expected:
            if read_piece(store, expected) is None:  # else it has come since the names were listed
                raise StoreDamaged(str(store), f"the object {tail_name(expected)} is missing, and {tail_name(number)} is there")
            return


class LogTail:
    """Writes the tail of the log: each piece is an object with the next number, created only where there is none.

    A server that starts puts its *fence* after the last piece, before it reads the log. So a piece of an earlier
    server either is before the fence, and read, or is refused, and its events are not acknowledged. Fences stay for
    ever: their numbers are those that earlier servers try.
    """

    def __init__(self, store: ObjectStore, start: str) -> None:
        self._store, self._start = store, start
        self.number = 0
        """The next piece has this number."""
        self.fences: list[int] = []

    def append(self, segment: int, begin: int, data: bytes) -> Extent:
        """Write bytes of the log as the next piece; `advance` then goes on to the piece after it.

        Raises: StoreTaken if another server has put its fence there; StoreFailed.
        """
        whole = self._pack(segment, begin, data)
        while not self._store.create(tail_name(self.number), whole):
            found = read_piece(self._store, self.number)
            if found is None or found.start != self._start:
                raise StoreTaken(str(self._store), "another server has begun to write to")
            if (found.extent, found.data) == (self._extent(segment, begin, whole), data):
                break
            self.number += 1  # an earlier try had other bytes; what comes from the same byte on replaces them
        return self._extent(segment, begin, whole)

    def advance(self) -> None:
        """Count the piece that was written.

        Its extent has to be noted in the same step, or a manifest of this moment would have neither.
        """
        self.number += 1

    def fence(self, manifest: Manifest) -> list[Extent]:
        """End the tail of earlier servers, and return its extents from where the manifest ends. Raises: StoreFailed."""
        check_tail(self._store, manifest.tail)
        self.number, self.fences = manifest.tail, list(manifest.fences)
        extents: list[Extent] = []
        fence = self._pack(0, 0, b"")
        while True:
            piece = read_piece(self._store, self.number)
            if piece is None and self._store.create(tail_name(self.number), fence):
                piece = Piece(self._start, None, b"")
            if piece is not None:
                if piece.extent is None:
                    self.fences.append(self.number)
                else:
                    extents.append(piece.extent)
                self.number += 1
                if piece.extent is None and piece.start == self._start:
                    return extents

    def _pack(self, segment: int, begin: int, data: bytes) -> bytes:
        return _PIECE.pack(self._start.encode(), segment, begin, zlib.crc32(data)) + data

    def _extent(self, segment: int, begin: int, whole: bytes) -> Extent:
        return Extent(segment, begin, begin + len(whole) - _PIECE.size, tail_name(self.number), zlib.crc32(whole), _PIECE.size)


def read_tail(store: ObjectStore, manifest: Manifest) -> list[Extent]:
    """Return the extents of the tail as it stands, from where the manifest ends. Raises: StoreFailed."""
    check_tail(store, manifest.tail)
    extents, number = list[Extent](), manifest.tail
    while (piece := read_piece(store, number)) is not None:
        extents += [piece.extent] if piece.extent is not None else []
        number += 1
    return extents


def replay(extents: list[Extent]) -> list[Extent]:
    """Return the extents that count. Each replaces what is there from its first byte on, for it was written after that."""
    counting: list[Extent] = []
    for extent in extents:
        while counting and (counting[-1].segment, counting[-1].begin) >= (extent.segment, extent.begin):
            counting.pop()
        if counting and counting[-1].segment == extent.segment and counting[-1].end > extent.begin:
            counting[-1] = msgspec.structs.replace(counting[-1], end=extent.begin)
        counting.append(extent)
    return counting
