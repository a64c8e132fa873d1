"""The store's troubles in the words of the mail."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.mail import MailBusy, MailFull, MailUnreachable
from fairlead.store._backend import translated
from fairlead.store._errors import StoreBusy, StoreError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.store._backend import Backend


@contextmanager
def translate_store_errors(backend: Backend) -> Iterator[None]:
    """Turn the errors of drivers and of the store into the mail's."""
    try:
        with translated(backend):
            yield
    except StoreFull as error:
        raise MailFull(
            f"{backend.where}: there is no room for the mail, so nothing was sent or marked; make room, and try again"
        ) from error
    except StoreBusy as error:
        raise MailBusy(str(error)) from error
    except StoreError as error:
        raise MailUnreachable(str(error)) from error
