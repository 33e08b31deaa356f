/**
 * Characters that end a line, move the cursor, are invisible or change the reading direction: control and format
 * characters, except the two that join the parts of a letter or an emoji.
 */
const UNPRINTABLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Escapes text from others, so that it can neither break a line nor change the state of a terminal: unprintable
 * characters become escape sequences.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, character => ESCAPES[character] ?? escaped(character))
}

/** Renders a value as JSON in which text from others is printable. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped)
}

function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
}
