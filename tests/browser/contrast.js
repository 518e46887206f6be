// Texts whose contrast with what lies behind them is below AA: [ratio, needed, text, colour, background], the worst first.
function parse(colour) {
  const parts = colour.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
}
function over(front, back) {
  return front.rgb.map((value, at) => value * front.alpha + back[at] * (1 - front.alpha));
}
function background(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  const canvas = dark && scheme.includes("dark") ? [18, 18, 18] : [255, 255, 255];
  return layers.reverse().reduce((under, layer) => over(layer, under), canvas);
}
function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => value / 255).map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ratio(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.textContent.trim();
  if (!text || !element.checkVisibility({ visibilityProperty: true }) || !element.getClientRects().length) continue;
  if (element.closest("script, style, title, desc")) continue;
  const style = getComputedStyle(element);
  const behind = background(element);
  const inSvg = element instanceof SVGElement;
  const colour = parse(inSvg ? style.fill : style.color);
  let opacity = 1;
  for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
  const front = over({ rgb: colour.rgb, alpha: colour.alpha * opacity }, behind);
  const size = parseFloat(style.fontSize);
  const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  const got = ratio(front, behind);
  if (got < needed) found.push([Math.round(got * 100) / 100, needed, text.slice(0, 40), style.color, behind.map(Math.round).join(",")]);
}
return found.sort((a, b) => a[0] - b[0]);
