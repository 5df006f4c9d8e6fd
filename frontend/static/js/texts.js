// The words that scripts use, as the page brought them: t("ago", { span: "5 s" }).

const entries = JSON.parse(document.getElementById("texts").textContent);

export function t(key, values = {}) {
  const text = entries[key];
  if (text === undefined) throw new Error(`no text for ${key}`);
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
