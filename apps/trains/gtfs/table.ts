import { parse } from 'csv-parse/sync'
import type { Fault } from '../input/findings.js'
import { readLines } from '../input/lines.js'
import { InputError } from '../input/source.js'
import { name } from '../messages/field.js'
import { reasonOf } from '../reason.js'
import type { Feed } from './feed.js'

export class Row {
  readonly line: number
  readonly #feed: Feed
  readonly #file: string
  readonly #record: readonly string[]
  readonly #places: ReadonlyMap<string, number>

  constructor(feed: Feed, file: string, { line, record }: Numbered, places: ReadonlyMap<string, number>) {
    this.line = line
    this.#feed = feed
    this.#file = file
    this.#record = record
    this.#places = places
  }

  /** Returns the trimmed value; empty if the line or the file does not have the column. */
  value(column: string): string {
    return this.#record[this.#places.get(column) ?? -1]?.trim() ?? ''
  }

  idFault(column: string): Fault | undefined {
    const checked = name(this.value(column))
    return 'refused' in checked ? { kind: column, reason: `${column} ${checked.refused}` } : undefined
  }

  /** Reports that the line is dropped. */
  reject(fault: Fault): void {
    this.#feed.findings.rejected({ file: this.#file, line: this.line, ...fault })
  }

  /** Reports that the line is used despite a fault. */
  repair(fault: Fault): void {
    this.#feed.findings.repaired({ file: this.#file, line: this.line, ...fault })
  }
}

/** One record per line, with any number of fields. */
const LINES = { record_delimiter: '\n', relax_column_count: true } as const

const UTF16 = ['fffe', 'feff']

/** A line in which each quote begins or ends a value, or is doubled within one. */
const REGULAR = /^(?:\s*"(?:[^"]|"")*"\s*|[^",]*)(?:,(?:\s*"(?:[^"]|"")*"\s*|[^",]*))*$/

/**
 * Reads a table of the feed line by line. The columns may be in any order, and include others than the required ones. A
 * line may omit values at its end that are not required. Rejects any other line with more or fewer fields than the
 * first one, because the columns of its fields are unknown. GTFS allows no line ends inside values, so an unclosed
 * quote ends with its line.
 * @throws InputError if the file is missing or empty, a required column is missing or duplicate, or the file is in
 * UTF-16 or has CR as line ends.
 */
export async function* readTable(feed: Feed, file: string, required: readonly string[]): AsyncGenerator<Row> {
  let places: ReadonlyMap<string, number> | undefined
  let width = 0
  let least = 0
  try {
    for await (const numbered of records(feed, file, () => width)) {
      const { record, isRegular } = numbered
      if (!places) {
        places = placesOf(file, record, required)
        width = record.length
        least = 1 + Math.max(...required.map(column => record.findIndex(title => title.trim() === column)))
        continue
      }
      const row = new Row(feed, file, numbered, places)
      if (record.length !== width) {
        const reason = `the line has ${record.length} fields, but the first line names ${width} columns`
        if (!isRegular || record.length < least || record.length > width) {
          row.reject({ kind: 'columns', reason })
          continue
        }
        row.repair({ kind: 'columns', reason: `${reason}; the missing ones are empty` })
      }
      yield row
    }
  } catch (error) {
    throw asInputError(file, error)
  }
  if (!places) throw new InputError(`${file} is empty: its first line must name the columns`)
}

interface Numbered {
  readonly line: number
  readonly record: readonly string[]
  /** Whether the line has no stray quotes, which would make its fields ambiguous. */
  readonly isRegular: boolean
}

/** Yields the fields of all lines except blank ones. @param width returns their expected number; 0 if unknown. */
async function* records(feed: Feed, file: string, width: () => number): AsyncGenerator<Numbered> {
  const { findings } = feed
  const bytes = (await feed.open(file)) as AsyncIterable<Uint8Array>
  for await (const lines of readLines(asText(bytes, file))) {
    // Parses the batch in one call, because a call for each line costs many times as much.
    const quoted = lines.map(({ text }) => text).filter(text => text.includes('"') && REGULAR.test(text))
    const parsed = parse(quoted.join('\n'), { ...LINES, trim: true }).values()
    for (const { number: line, text, fault } of lines) {
      if (fault?.kind === 'too long') {
        if (width() === 0) throw new InputError(`${file}, line ${line}: ${fault.reason}`)
        findings.rejected({ file, line, ...fault })
        continue
      }
      if (fault) {
        const reason = 'the line is not valid UTF-8; invalid bytes became U+FFFD'
        findings.repaired({ file, line, kind: fault.kind, reason })
      }
      let record: readonly string[]
      let isRegular = true
      if (!text.includes('"')) record = text.split(',')
      else if (REGULAR.test(text)) record = parsed.next().value!
      else {
        findings.repaired({ file, line, kind: 'quotes', reason: 'a stray quote was read as text' })
        record = irregularFields(text, width())
        isRegular = false
      }
      if (record.some(field => field.trim() !== '')) yield { line, record, isRegular }
    }
  }
}

/** Yields the bytes of a file unchanged. @throws InputError if their encoding or line ends can't be read. */
async function* asText(bytes: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<Uint8Array> {
  let isFirst = true
  for await (const chunk of bytes) {
    if (isFirst) refuseOtherText(Buffer.from(chunk), file)
    isFirst = false
    yield chunk
  }
}

function refuseOtherText(start: Buffer, file: string): void {
  // In UTF-16 without a byte order mark, every other byte of an English header is zero.
  if (UTF16.includes(start.toString('hex', 0, 2)) || start.subarray(0, 4).includes(0)) {
    throw new InputError(`${file} is in UTF-16 or another wide encoding: save it as UTF-8`)
  }
  // A file with CR as line ends may contain a line feed, because an editor may have added one at the end.
  if (/^[^\n]*\r[^\r\n]/.test(start.toString('latin1'))) {
    throw new InputError(`${file} has CR alone as line ends: save it with LF or CRLF`)
  }
}

/** Splits a line with stray quotes, if possible into `width` fields. */
function irregularFields(line: string, width: number): readonly string[] {
  // The parser takes a quote as text unless a comma follows, so this removes blanks between a quote and a comma.
  const closed = line.replace(/"\s+(?=,|$)/g, '"')
  let quoted: readonly string[]
  try {
    quoted = parse(closed, { ...LINES, ltrim: true, relax_quotes: true })[0]!
  } catch {
    // A quote at the start of a value is not closed.
    return line.split(',')
  }
  const plain = line.split(',')
  return quoted.length !== width && plain.length === width ? plain : quoted
}

/** Returns the position of each column. If columns have the same name, returns the position of the first. */
function placesOf(
  file: string,
  header: readonly string[],
  required: readonly string[],
): ReadonlyMap<string, number> {
  const names = header.map(name => name.trim())
  const missing = required.filter(column => !names.includes(column))
  if (missing.length > 0) {
    throw new InputError(`${file} has no column ${missing.join(', ')}`)
  }
  const twice = required.find(column => names.indexOf(column) < names.lastIndexOf(column))
  if (twice !== undefined) throw new InputError(`${file} has duplicate columns ${twice}`)
  return new Map(names.map((name, index) => [name, index] as const).toReversed())
}

function asInputError(file: string, error: unknown): unknown {
  if (error instanceof InputError) return error
  return new InputError(`can't read ${file}: ${reasonOf(error)}`, { cause: error })
}
