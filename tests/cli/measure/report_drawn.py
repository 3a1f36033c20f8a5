"""Pages of millrace as headless Chromium draws them.

usage: report_drawn.py [--keep FOLDER] PAGE...

Each page is laid out 360, 800 and 1,400 pixels wide, in light and dark, and looked at by a script inside it: text fits into what it
stands in and into the window (a table that is too wide scrolls), no word of a chart lies on another or outside of it, words are large
enough and stand out from their background (contrast 4.5 and more, WCAG 2), every chart has marks and they lie inside of it, the zoom of
a timeline moves, nothing is fetched. Then it is drawn, and the pixels are counted: its colours are there. Pages with planted faults
come along, and each of them must be found.

--keep writes the pictures into a folder, for a person to look at. MILLRACE_CHROMIUM names another program than chromium."""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib

CHROMIUM = [os.environ.get("MILLRACE_CHROMIUM", "chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--force-device-scale-factor=1", "--virtual-time-budget=10000"]
WIDTHS = (360, 800, 1400)
HEIGHT = 900
DRAWN = {"light": (1400, 1600), "dark": (1400, 1600), "narrow": (500, 1600)}  # a window is at least 500 wide

LOOK = r"""<script>addEventListener('load', () => {
  const problems = new Set(), tell = (what, text) => problems.add(what + ': ' + text.trim().slice(0, 60));
  const box = e => e.getBoundingClientRect(), ROOM = 1, SMALLEST = 9;
  const over = (a, b) => a.left < b.right - ROOM && b.left < a.right - ROOM && a.top < b.bottom - ROOM && b.top < a.bottom - ROOM;
  const inside = (a, b) => a.left >= b.left - ROOM && a.right <= b.right + ROOM && a.top >= b.top - ROOM && a.bottom <= b.bottom + ROOM;
  const numbers = c => c.match(/[\d.]+/g).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };

  // words, wherever they are
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const words = [], small = new Set();
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (walk.currentNode.data.trim() && !e.closest('script, style, title')) words.push(walk.currentNode);
  }
  for (const node of words) {
    const e = node.parentElement, style = getComputedStyle(e), in_svg = e.closest('svg'), range = document.createRange();
    range.selectNodeContents(node);
    const c = contrast(numbers(in_svg ? style.fill : style.color), behind(e));
    if (c < 4.5) tell('contrast ' + c.toFixed(1), node.data);
    const scale = in_svg ? e.getScreenCTM().a : 1, size = parseFloat(style.fontSize) * scale;
    if (size < SMALLEST && !small.has(size)) small.add(size) && tell('letters of ' + size.toFixed(1) + ' pixels', node.data);
    if (in_svg) continue;
    let holder = e;
    while (getComputedStyle(holder).display === 'inline') holder = holder.parentElement;
    const scrolls = e.closest('.wide'), b = box(holder);
    for (const r of range.getClientRects()) {
      if (r.left < b.left - ROOM || r.right > b.right + ROOM) tell('wider than its ' + holder.tagName.toLowerCase(), node.data);
      if (!scrolls && (r.left < -ROOM || r.right > innerWidth + ROOM)) tell('outside of the window', node.data);
    }
  }
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg, script, .wide *')) continue;
    const b = box(e), parent = box(e.parentElement);
    if (b.right > parent.right + ROOM || b.left < parent.left - ROOM) tell('wider than what holds it', e.tagName + ' ' + e.textContent);
  }
  if (document.documentElement.scrollWidth > innerWidth) tell('wider than the window', String(document.documentElement.scrollWidth));

  // charts
  const charts = [...document.querySelectorAll('figure.chart svg')];
  charts.forEach((svg, n) => {
    const texts = [...svg.querySelectorAll('text')], all = box(svg), view = svg.viewBox.baseVal;
    const marks = [...svg.querySelectorAll('polyline, rect.v, circle')];
    const size = m => { const b = m.getBBox(); return Math.max(b.width, b.height); };
    if (!marks.some(m => size(m) > 0)) tell('chart ' + n, 'nothing is drawn in it');
    for (const m of marks) {
      const b = m.getBBox();
      if (size(m) > 0 && (b.x < -ROOM || b.y < -ROOM || b.x + b.width > view.width + ROOM || b.y + b.height > view.height + ROOM))
        tell('chart ' + n, 'a mark outside: ' + [b.x, b.y, b.width, b.height].map(Math.round).join(' '));
    }
    texts.forEach((w, i) => {
      if (!inside(box(w), all)) tell('chart ' + n + ': outside', w.textContent);
      texts.slice(i + 1).forEach(o => { if (over(box(w), box(o))) tell('chart ' + n, w.textContent + ' on ' + o.textContent); });
    });
  });
  document.querySelectorAll('.time').forEach(time => {
    const plot = time.querySelector('svg.plot'), before = plot.getAttribute('viewBox');
    if (!plot.querySelector('rect')) tell('timeline', 'nothing is drawn in it');
    for (const inner of time.querySelectorAll('svg svg:not(.plot)'))
      if (inner.querySelector('text').getComputedTextLength() > +inner.getAttribute('width') - 6) tell('timeline: cut off', inner.textContent);
    time.querySelector('button').click();
    if (plot.getAttribute('viewBox') === before) tell('timeline', 'the zoom does not move');
  });
  const loaded = performance.getEntriesByType('resource').map(r => r.name).filter(n => !n.startsWith('data:'));
  if (loaded.length) tell('fetched', loaded.join(' '));
  const style = getComputedStyle(document.body);
  parent.postMessage({name: window.name, problems: [...problems], charts: charts.length, words: words.length, width: innerWidth,
                      colours: style.color + ' on ' + style.backgroundColor}, '*');
});</script>"""

GATHER = """<!doctype html><meta charset="utf-8"><body><pre id="seen"></pre><script>
const seen = [];
addEventListener('message', m => { seen.push(m.data);
  if (seen.length === %d) document.getElementById('seen').textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen)))); });
</script>%s"""

# Planted faults: the text added to a correct page, and the finding expected in a narrow window.
PLANTED = {
    "overflow": ('<div style="width:10em"><p style="white-space:nowrap">planted words that do not fit into ten letters</p></div>',
                 "wider than its p: planted"),
    "window": ('<p style="width:90em">planted, wider than a narrow window</p>', "wider than the window"),
    "pale": ('<p style="color:#888;background:#999">planted</p>', "contrast 1"),
    "tiny": ('<p style="font-size:6px">planted</p>', "letters of 6.0 pixels: planted"),
    "empty": ('<figure class="chart"><svg viewBox="0 0 640 230"><text x="9" y="99">planted</text></svg></figure>', "nothing is drawn"),
    "outside": ('<figure class="chart"><svg viewBox="0 0 640 230"><polyline class="a" points="9,9 900,99"/></svg></figure>', "a mark outside"),
    "collision": ('<figure class="chart"><svg viewBox="0 0 640 230"><polyline class="a" points="9,9 90,99"/><text x="50" y="50">planted</text>'
                  '<text x="60" y="50">words</text></svg></figure>', "planted on words"),
}


def chromium(folder, scheme, *options):
    command = [*CHROMIUM, f"--user-data-dir={folder}/profile", f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", *options]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def look(pages, folder, scheme):
    """Findings of the script inside the page, by page name and width."""
    frames = []
    for name, text in pages.items():
        with open(os.path.join(folder, name + ".html"), "w", encoding="utf-8") as f:
            f.write(text.replace("</body>", LOOK + "</body>"))
        frames += [f'<iframe name="{name} {width}" src="{name}.html" width="{width}" height="{HEIGHT}" style="border:0"></iframe>'
                   for width in (WIDTHS[:1] if name.startswith("planted-") else WIDTHS)]
    gather = os.path.join(folder, "gather.html")
    with open(gather, "w", encoding="utf-8") as f:
        f.write(GATHER % (len(frames), "\n".join(frames)))
    dom = chromium(folder, scheme, "--window-size=1500,1000", "--dump-dom", "file://" + gather).decode()
    found = re.search('<pre id="seen">([^<]*)</pre>', dom)[1]
    if not found:
        sys.exit(f"{scheme}: not every page was laid out within its time")
    return {tuple(one["name"].split()): one for one in json.loads(base64.b64decode(found))}


def pixels(path):
    """Of a PNG that Chromium wrote (8 bits, RGB or RGBA): how many there are of each colour."""
    with open(path, "rb") as f:
        data = f.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        if kind == b"IHDR":
            width, height, channels = int.from_bytes(data[at + 8:at + 12], "big"), int.from_bytes(data[at + 12:at + 16], "big"), {2: 3, 6: 4}[data[at + 17]]
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    raw, row, stride, counts = zlib.decompress(packed), bytearray(width * channels), width * channels, {}
    for y in range(height):
        how, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        if how == 2 and not any(line):  # as the row above, which most are
            line = row
        elif how:
            for x in range(stride):
                left, up, corner = (line[x - channels], row[x], row[x - channels]) if x >= channels else (0, row[x], 0)
                if how == 4:
                    guess = left + up - corner
                    by = (abs(guess - left), abs(guess - up), abs(guess - corner))
                    line[x] = (line[x] + (left if by[0] <= by[1] and by[0] <= by[2] else up if by[1] <= by[2] else corner)) & 255
                else:
                    line[x] = (line[x] + (left, up, (left + up) // 2)[how - 1]) & 255
        for x in range(0, stride, channels):
            colour = bytes(line[x:x + 3])
            counts[colour] = counts.get(colour, 0) + 1
        row = line
    return counts


def colour_of(text, name, scheme):
    """Of the page's own table of colours, which has light before dark."""
    return bytes.fromhex([c if len(c) == 6 else "".join(2 * d for d in c) for c in re.findall(name + r":#([0-9a-f]+)", text)][scheme == "dark"])


def draw(name, text, folder, kept):
    """Faults in the drawn pictures of a page."""
    page = os.path.join(folder, "drawn.html")
    with open(page, "w", encoding="utf-8") as f:
        f.write(text)
    for way, (width, height) in DRAWN.items():
        picture = os.path.join(kept or folder, f"{name}-{way}.png")
        chromium(folder, way, f"--window-size={width},{height}", f"--screenshot={picture}", "file://" + page)
        counts = pixels(picture)
        ground, first = (counts.get(colour_of(text, part, way), 0) for part in ("--bg", "--a"))
        if ground < width * height / 4:
            yield f"{way}: {ground} of {width * height} pixels are the page's ground"
        if first < 100:
            yield f"{way}: {first} pixels of the first run's colour: its lines are not drawn"


def main():
    arguments, kept = sys.argv[1:], None
    if arguments[:1] == ["--keep"]:
        kept, arguments = os.path.abspath(arguments[1]), arguments[2:]
        os.makedirs(kept, exist_ok=True)
    pages, planted, problems = {}, {}, []
    for path in arguments:
        with open(path, encoding="utf-8") as f:
            pages[os.path.basename(path).removesuffix(".html").replace(" ", "_")] = f.read()
    right = next(iter(pages.values()))
    for name, (fault, _) in PLANTED.items():
        planted["planted-" + name] = right.replace("</body>", fault + "</body>")
    with tempfile.TemporaryDirectory() as folder:
        seen = {scheme: look({**pages, **planted}, folder, scheme) for scheme in ("light", "dark")}
        for name in pages:
            for width in map(str, WIDTHS):
                two = [seen[scheme][name, width] for scheme in seen]
                for scheme, one in zip(seen, two):
                    problems += [f"{name}, {scheme}, {width} wide: {p}" for p in one["problems"]]
                    if one["charts"] == 0 or one["words"] < 20 or one["width"] != int(width):
                        problems.append(f"{name}, {scheme}, {width} wide: {one['charts']} charts, {one['words']} pieces of text, {one['width']} wide")
                if two[0]["colours"] == two[1]["colours"]:
                    problems.append(f"{name}: light and dark look the same: {two[0]['colours']}")
        for name, (_, expected) in PLANTED.items():
            for scheme, looked in seen.items():
                reported = looked["planted-" + name, str(WIDTHS[0])]["problems"]
                if not any(expected in p for p in reported):
                    problems.append(f"planted fault {name}, {scheme}: not found; reported: {reported}")
        for name, text in pages.items() if kept else [next(iter(pages.items()))]:
            problems += [f"{name}, {p}" for p in draw(name, text, folder, kept)]
    print("\n".join(dict.fromkeys(problems)) or f"{len(pages)} pages, {len(PLANTED)} planted faults: right")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
