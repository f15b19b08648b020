"""The inspector as an application for a service of your own. It needs ``refold[inspect]``."""

from refold.infrastructure.inspector.access import Access, Authorise
from refold.infrastructure.inspector.site import app

__all__ = ["Access", "Authorise", "app"]
