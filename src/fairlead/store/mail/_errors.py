"""Translates store errors into mail errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.mail import MailBusy, MailFull, MailUnreachable
from fairlead.store._backend import translate_errors
from fairlead.store._errors import StoreBusy, StoreError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.store._backend import Backend


@contextmanager
def translate_store_errors(backend: Backend) -> Iterator[None]:
    """Raise errors of drivers and of the store as `MailError`."""
    try:
        with translate_errors(backend):
            yield
    except StoreFull as error:
        raise MailFull(
            f"{backend.location}: the disk is full, so nothing was sent or marked; free some space and try again"
        ) from error
    except StoreBusy as error:
        raise MailBusy(str(error)) from error
    except StoreError as error:
        raise MailUnreachable(str(error)) from error
