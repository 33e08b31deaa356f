import { StringDecoder } from 'node:string_decoder'
import type { Fault } from './findings.js'

/** Maximum length of a line, in characters. */
const MAX_LINE = 64 * 1024

/** A line of a text file, without its line end. */
export interface Line {
  /** The line's number, counted from 1. */
  readonly number: number
  /** Empty if the line is too long. Invalid bytes become U+FFFD. */
  readonly text: string
  readonly fault?: Fault
}

const NOT_UTF8: Fault = { kind: 'not UTF-8', reason: 'the line is not valid UTF-8' }

function tooLong(length: number, limit: number): Fault {
  return { kind: 'too long', reason: `the line has ${length} characters, more than the limit of ${limit}` }
}

/**
 * Splits UTF-8 text into lines that end with LF or CRLF, in batches as they arrive. Drops a byte order mark. A line
 * that is too long or not UTF-8 has a fault. Between chunks, keeps at most `limit` characters of a line in memory.
 */
export async function* readLines(
  bytes: AsyncIterable<Uint8Array | string>,
  limit: number = MAX_LINE,
): AsyncGenerator<readonly Line[]> {
  const decoder = new StringDecoder('utf8')
  let number = 0
  let rest = ''
  // Number of characters of the current line that were dropped because it is too long.
  let dropped = 0
  let first = true

  const line = (text: string): Line => {
    number++
    const length = dropped + text.length
    dropped = 0
    const end = text.endsWith('\r') ? -1 : undefined
    if (length > limit) return { number, text: '', fault: tooLong(length, limit) }
    // The decoder replaces invalid bytes by this character.
    const isBroken = text.includes('\uFFFD')
    return { number, text: text.slice(0, end), ...(isBroken && { fault: NOT_UTF8 }) }
  }

  for await (const chunk of bytes) {
    let text = rest + (typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk)))
    if (first && text !== '') {
      first = false
      if (text.startsWith('\uFEFF')) text = text.slice(1)
    }
    const batch: Line[] = []
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      batch.push(line(text.slice(start, end)))
      start = end + 1
    }
    rest = text.slice(start)
    if (dropped + rest.length > limit) {
      dropped += rest.length
      rest = ''
    }
    if (batch.length > 0) yield batch
  }
  rest += decoder.end()
  if (rest !== '' || dropped > 0) yield [line(rest)]
}
