// Markdown as it comes, as far as it is clear: headings, lists, quotes, paragraphs, emphasis. The finished text is
// rendered by the server; this only has to look like it on the way. Builds nodes, never markup.

const LIST = /^\s*(?:[-*+]|\d+[.)])\s+/;
const HEADING = /^(#{1,6})\s+/;
const QUOTE = /^>\s?/;
const INLINE = /(\*\*[^*\n]+(?:\*\*|\*?$)|`[^`\n]+(?:`|$)|\*[^*\s][^*\n]*\*)/;
const UNCLEAR = /(?:^|\n)[ \t]*(?:#{1,6}|\d{1,3}[.)]?|[-*+>])?[ \t]*\*{0,2}`?$/;

// The text's blocks: [{ kind, lines }]. A block that has ended never changes when text is appended, and a beginning
// that could still become anything (a lone mark in the last line) waits.
export function blocks(text) {
  const found = [];
  let open = null;
  for (const line of text.replace(UNCLEAR, "").split("\n")) {
    const kind = kindOf(line, open);
    if (kind === null) open = null;
    else if (open && open.kind === kind && kind !== "heading") open.lines.push(line);
    else found.push((open = { kind, lines: [line] }));
  }
  return found;
}

function kindOf(line, open) {
  if (line.trim() === "") return null;
  if (HEADING.test(line)) return "heading";
  if (LIST.test(line)) return /^\s*\d/.test(line) ? "ol" : "ul";
  if (QUOTE.test(line)) return "quote";
  return open && (open.kind === "ul" || open.kind === "ol") ? open.kind : "paragraph";
}

export function render({ kind, lines }) {
  if (kind === "heading") return element(`h${lines[0].match(HEADING)[1].length}`, lines[0].replace(HEADING, ""));
  if (kind === "quote") return element("blockquote", lines.map((line) => line.replace(QUOTE, "")).join(" "));
  if (kind === "paragraph") return element("p", lines.join(" "));
  const list = document.createElement(kind);
  for (const item of items(lines)) list.append(element("li", item));
  return list;
}

function items(lines) {
  const found = [];
  for (const line of lines) {
    if (LIST.test(line)) found.push(line.replace(LIST, ""));
    else found[found.length - 1] += ` ${line.trim()}`;
  }
  return found;
}

function element(name, text) {
  const made = document.createElement(name);
  for (const piece of text.split(INLINE)) made.append(inline(piece));
  return made;
}

function inline(piece) {
  if (/^\*\*[^*]/.test(piece)) return wrapped("strong", piece.replace(/^\*\*|\*{1,2}$/g, ""));
  if (/^`[^`]/.test(piece)) return wrapped("code", piece.replace(/^`|`$/g, ""));
  if (/^\*[^*].*\*$/.test(piece)) return wrapped("em", piece.slice(1, -1));
  return piece;
}

function wrapped(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
