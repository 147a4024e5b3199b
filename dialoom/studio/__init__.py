"""The studio: runs, their scenarios, conversations and reports, looked at in a browser.

`studio.serve` serves it; NiceGUI, an extra, is imported only then. How it is made:

* `access` stands before everything and decides who is let in; it knows nothing of pages.
* `studio.Studio` holds the runs that were given; `page.View` is what one page shows, as its address says it.
* `pages/` has a module for each page, with a `PAGE` (a `page.Page`), listed in `pages.PAGES`. A page is added by adding
  such a module and naming it there: its tab, its frame, its errors and its address come with it.
* `studio.css` is all that it looks like. Pages use its classes, and colours only by its variables.

What people and models have said reaches a page as text only (`ui.label`, the text of an element), never as HTML or
Markdown.
"""
