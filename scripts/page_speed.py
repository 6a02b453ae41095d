"""Time the decision page in Chromium: first paint, and a frame while a slider is dragged.

    python scripts/page_speed.py [page.html]

Without a page, the script makes one for a HELOC model with pairs (needs PLAINRISK_DATA) or else for German credit.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import plainrisk as pr
from plainrisk.errors import PlainriskError

OPENINGS, STEPS = 7, 60

PAINT = """() => new Promise((done) => {
  const found = () => performance.getEntriesByName('first-contentful-paint')[0];
  const wait = () => (found() ? done(found().startTime) : setTimeout(wait, 20));
  wait();
})"""

# From the event of a drag until script, style and layout are done; the paint itself cannot be waited for.
DRAG = """async (steps) => {
  const slider = document.querySelector('input[type=range]');
  const channel = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(0);
  });
  const times = [];
  for (let i = 0; i < steps; i++) {
    await new Promise(requestAnimationFrame);
    const begin = performance.now();
    slider.value = String(Math.round((i / steps) * Number(slider.max)));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    await channel();
    document.body.getBoundingClientRect();
    times.push(performance.now() - begin);
  }
  return times;
}"""


def make_page(folder: Path) -> Path:
    path = folder / "page.html"
    try:
        data = pr.datasets.load("heloc")
        pairs = [("ExternalRiskEstimate", "NetFractionRevolvingBurden")]
    except PlainriskError:
        data, pairs = pr.datasets.load("german"), None
    model = pr.AdditiveRiskModel(data.schema, shapes="smooth", pairs=pairs).fit(data.frame, data.target)
    model.report(path)
    return path


class Clock:
    """The processor time of a page's main thread, which other work on the machine does not lengthen."""

    def __init__(self, page: Page) -> None:
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(float(m["value"]) for m in metrics if m["name"] == "ThreadTime")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        path = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else make_page(Path(folder))
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        paints, work = [], []
        for _ in range(OPENINGS):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            clock = Clock(page)
            begin = clock.read()
            page.goto(f"{path.as_uri()}#applicant")
            paints.append(float(page.evaluate(PAINT)))
            work.append(clock.read() - begin)
        page.evaluate(DRAG, STEPS)
        begin = clock.read()
        drags = page.evaluate(DRAG, STEPS)
        frame = (clock.read() - begin) / STEPS
        browser.close()
        middle = statistics.median
        print(f"page          {path.stat().st_size / 1000:.0f} kB")
        print(f"first paint   {middle(paints):.0f} ms (median of {OPENINGS}, best {min(paints):.0f})")
        print(f"              {middle(work):.0f} ms of processor time")
        print(f"drag          {middle(drags):.1f} ms a frame (median of {STEPS})")
        print(f"              {frame:.1f} ms of processor time, painting included")


if __name__ == "__main__":
    main()
