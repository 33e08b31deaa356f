/**
 * What ends a line, moves the cursor, hides itself or turns the reading direction: control and format characters, but
 * for the two that join the parts of a letter or an emoji.
 */
const UNPRINTABLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Text of other people in a form that can neither break a line nor change how a terminal goes on: what can't be printed
 * is shown as its escape.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, character => ESCAPES[character] ?? escaped(character))
}

/** A value as JSON in which text of other people is printable. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped)
}

/** As JavaScript and JSON write it. */
function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
}
