"""The window. The only package that imports PySide6 or pyqtgraph.

The core is imported here, ahead of Qt: PySide6 reads the source of every module that is imported after it.
"""

from planner.models.readers import assemble as assemble
from planner.models.readers import config_json as config_json
from planner.plan import catalog as catalog
from planner.plan import explore as explore
from planner.plan import files as files
from planner.present import plan as plan
