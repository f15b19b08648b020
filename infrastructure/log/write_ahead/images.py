"""Every image of every page in a write-ahead log, also those that SQLite would not come to."""

from collections import defaultdict
from typing import BinaryIO

from .chain import Chain, read_frame
from .checksums import FRAME_HEAD
from .correcting import corrections


class PageImages:
    """The images of pages in the frames that were stored for certain, told by the number of the frame."""

    def __init__(self, file: BinaryIO, chain: Chain, frames: int) -> None:
        self._file = file
        self._chain = chain
        self._mended: dict[int, bytes] = {}
        """Frames of which the damaged bit is known."""
        self._proved: dict[int, list[int]] = defaultdict(list)
        """By page, the frames whose content is what their checksum says."""
        self.page_size = chain.header.page_size
        self.frames = frames
        self.unproved: dict[int, list[bytes]] = {}
        """Frames of which the damage is not known for certain, and the pages that they can have held."""
        self.pages = 0
        """How many pages the database has after the last commit."""
        for index in range(frames):
            self._prove(index)
        self.commits = self._commits()

    def image(self, index: int) -> bytes:
        """Return the page in a frame."""
        return self._frame(index)[FRAME_HEAD:]

    def images(self, index: int) -> list[bytes]:
        """Return the page in a frame, and what else it can have been where it is damaged."""
        return [self.image(index), *self.unproved.get(index, ())]

    def newest(self, page: int, until: int) -> int | None:
        """Return the newest proved frame of a page, none behind ``until``; None if there is none."""
        frames = self._proved.get(page, ())
        return next((index for index in reversed(frames) if index <= until), None)

    def _frame(self, index: int) -> bytes:
        return self._mended.get(index) or read_frame(self._file, self._chain, index)

    def _prove(self, index: int) -> None:
        frame = self._chain.frames[index]
        page, size = frame.page, frame.size
        if not self._chain.is_proved(index):
            variants = self._corrections(index)
            if len(variants) != 1:
                self.unproved[index] = [variant[FRAME_HEAD:] for variant in variants]
                return
            [mended] = variants
            self._mended[index] = mended
            page, size = (int.from_bytes(mended[at : at + 4], "big") for at in (0, 4))
        self._proved[page].append(index)
        self.pages = size or self.pages

    def _corrections(self, index: int) -> list[bytes]:
        frames, header = self._chain.frames, self._chain.header
        seed = frames[index - 1].stored if index else header.stored
        data = read_frame(self._file, self._chain, index)
        return corrections(data, seed, frames[index].stored, big=header.big)

    def _commits(self) -> list[int]:
        """Return for each frame the last frame of its commit."""
        commits, last = [0] * self.frames, self.frames - 1
        for index in range(self.frames - 1, -1, -1):
            if self._chain.frames[index].size:
                last = index
            commits[index] = last
        return commits
