/** Text in a form that can neither break a line nor change how a terminal goes on: control characters as escapes. */
export function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, character => ESCAPES[character] ?? unicodeEscape(character))
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
