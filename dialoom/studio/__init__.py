"""The studio: it shows runs, their scenarios, conversations and reports in a browser.

`studio.serve` starts it; NiceGUI, an extra, is imported only then. The structure:

* `access` is in front of the application and decides which browsers are admitted; it does not depend on the pages.
* `studio.Studio` holds the given runs. `page.View` is what one page shows, as specified by its address.
* `pages/` has a module for each page, with a `PAGE` (a `page.Page`) that `pages.PAGES` lists. To add a page, add such a
  module and list it there: the page then has a tab, a frame, an address, and error handling.
* The style sheets define the whole appearance. Pages use their classes, and use colours only through their variables.

Texts of people and models are added to a page only as text (`ui.label`, the text of an element), never as HTML or
Markdown.
"""
