"""Pages in headless Chromium: `report_drawn.py PAGE...`. In light and dark something is drawn in every chart, no word of a chart lies on
another or outside it, nothing is wider than the window, and the zoom of a timeline moves."""
import json
import os
import subprocess
import sys
import tempfile

CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=2000"]
LOOK = """<script>addEventListener('load', () => {
  const problems = [], boxes = e => e.getBoundingClientRect();
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  if (document.documentElement.scrollWidth > innerWidth) problems.push('wider than the window: ' + document.documentElement.scrollWidth);
  const charts = [...document.querySelectorAll('figure.chart svg')];
  charts.forEach((svg, n) => {
    const words = [...svg.querySelectorAll('text')], all = boxes(svg);
    const marks = [...svg.querySelectorAll('polyline, rect.v, circle')];
    const drawn = marks.some(m => m.getTotalLength ? m.getTotalLength() > 0 : boxes(m).height > 0);
    if (!drawn && !svg.querySelector('title') && marks.length) problems.push('chart ' + n + ' is empty');
    words.forEach((w, i) => {
      const a = boxes(w);
      if (a.left < all.left - 1 || a.right > all.right + 1 || a.bottom > all.bottom + 1) problems.push('chart ' + n + ': outside: ' + w.textContent);
      words.slice(i + 1).forEach(o => { if (over(a, boxes(o))) problems.push('chart ' + n + ': ' + w.textContent + ' on ' + o.textContent); });
    });
  });
  let zoomed = null;
  const time = document.querySelector('.time');
  if (time) {
    const plot = time.querySelector('svg.plot'), before = plot.getAttribute('viewBox');
    if (!plot.querySelector('rect')) problems.push('the timeline is empty');
    time.querySelector('button').click();
    zoomed = plot.getAttribute('viewBox') !== before;
  }
  const seen = {problems, zoomed, charts: charts.length, background: getComputedStyle(document.body).backgroundColor,
                colour: getComputedStyle(document.body).color, loaded: performance.getEntriesByType('resource').map(r => r.name)
                .filter(n => !n.startsWith('data:'))};
  document.body.innerHTML = '<pre id="seen">' + btoa(unescape(encodeURIComponent(JSON.stringify(seen)))) + '</pre>';
});</script>"""


def look(page, folder, dark):
    """What the script above saw of a copy of the page."""
    import base64
    with open(page, encoding="utf-8") as f:
        text = f.read()
    copy = os.path.join(folder, "page.html")
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text.replace("</body>", LOOK + "</body>"))
    command = [*CHROMIUM, f"--user-data-dir={folder}/profile", "--window-size=1280,2000",
               *(["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]), "--dump-dom",
               "file://" + copy]
    dom = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=True).stdout.decode()
    begin = dom.index('<pre id="seen">') + len('<pre id="seen">')
    return json.loads(base64.b64decode(dom[begin:dom.index("</pre>", begin)]))


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for page in sys.argv[1:]:
            light, dark = look(page, folder, False), look(page, folder, True)
            with open(page, encoding="utf-8") as f:
                text = f.read()
            problems = light["problems"] + dark["problems"]
            if light["background"] == dark["background"] or light["colour"] == dark["colour"]:
                problems.append(f"light and dark look the same: {light['background']}")
            if light["loaded"]:
                problems.append(f"fetched: {light['loaded']}")
            if light["charts"] == 0:
                problems.append("no chart at all")
            if 'class="time"' in text and not light["zoomed"]:
                problems.append("the zoom does not move")
            for problem in problems:
                print(f"{page}: {problem}")
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
