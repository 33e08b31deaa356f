import { pipeline, Readable } from 'node:stream'
import { parse, type Options } from 'csv-parse'
import { parse as parseText } from 'csv-parse/sync'
import type { FindingsListener } from '../input/findings.js'
import { readLines } from '../input/lines.js'
import { InputError } from '../input/source.js'
import type { FeedFiles } from './feed-files.js'

/** A line of a table: its number in the file and its values by column. */
export interface Row {
  readonly line: number
  /** The value; empty when the line leaves it out or the file lacks the column. */
  value(column: string): string
}

/** Quotes within a value are text, as in most readers of CSV. */
const LENIENT: Options = { relax_quotes: true, relax_column_count: true }

/** A line whose quotes all begin and end a value, or stand twice within one. */
const REGULAR = /^(?: *"(?:[^"]|"")*" *|[^",]*)(?:,(?: *"(?:[^"]|"")*" *|[^",]*))*$/

/**
 * Reads a table of the feed line by line. Columns may stand in any order, further ones are passed over, and blanks
 * around names and values are dropped. A line whose fields can't be told to their columns is rejected, and the rest
 * goes on.
 * @throws InputError when the file or a required column is missing.
 */
export async function* readTable(
  files: FeedFiles,
  file: string,
  required: readonly string[],
  findings: FindingsListener,
): AsyncGenerator<Row> {
  const lines = closedLines(await files.open(file), file, findings)
  const parser = parse({ ...LENIENT, trim: true, info: true, record_delimiter: '\n', skip_empty_lines: true })
  const problems: unknown[] = []
  pipeline(Readable.from(lines), parser, error => {
    if (error) problems.push(error)
  })
  let header: readonly string[] | undefined
  const places = new Map<string, number>()
  try {
    for await (const parsed of parser) {
      const { record, info } = parsed as ParsedRecord
      if (!header) {
        checkHeader(file, record, required)
        header = record
        for (const [index, column] of header.entries()) places.set(column, index)
        continue
      }
      const line = info.lines
      if (record.length !== header.length) {
        const reason = `the line has ${record.length} fields, the first line names ${header.length} columns`
        const finding = { file, line, kind: 'fields', reason }
        if (!isUsable(record, header.length, required, places)) {
          findings.rejected(finding)
          continue
        }
        findings.mended(finding)
      }
      yield { line, value: column => record[places.get(column) ?? -1] ?? '' }
    }
  } catch (error) {
    throw asInputError(file, problems[0] ?? error)
  }
  if (!header) throw new InputError(`${file} is empty: its first line must name the columns`)
}

interface ParsedRecord {
  readonly record: readonly string[]
  readonly info: { readonly lines: number }
}

/** Whether a line that is too short has all that is required, or one that is too long has only blanks too many. */
function isUsable(
  record: readonly string[],
  columns: number,
  required: readonly string[],
  places: ReadonlyMap<string, number>,
): boolean {
  return (
    record.slice(columns).every(field => field === '') &&
    required.every(column => places.get(column)! < record.length)
  )
}

/**
 * Hands on the lines so that none ends within quotes, and an empty line for each that can't be used, so that line
 * numbers stay. The GTFS reference allows no line ends inside values; without this, one quote that is not closed would
 * swallow the lines after it.
 */
async function* closedLines(
  bytes: Readable,
  file: string,
  findings: FindingsListener,
): AsyncGenerator<string> {
  for await (const lines of readLines(bytes as AsyncIterable<Uint8Array>)) {
    let text = ''
    for (const { number: line, text: given, fault } of lines) {
      if (fault?.kind === 'too long') {
        if (line === 1) throw new InputError(`${file}, line 1: ${fault.reason}`)
        findings.rejected({ file, line, ...fault })
      } else if (fault) findings.mended({ file, line, ...fault })
      if (!given.includes('"') || REGULAR.test(given)) {
        text += given.trim() === '' ? '\n' : `${given}\n`
        continue
      }
      findings.mended({ file, line, kind: 'quotes', reason: 'a stray quote in the line is text' })
      text += `${withQuotesClosed(given)}\n`
    }
    yield text
  }
}

function withQuotesClosed(line: string): string {
  return fieldsOf(line)
    .map(field => `"${field.replaceAll('"', '""')}"`)
    .join(',')
}

function fieldsOf(line: string): readonly string[] {
  try {
    // With `rtrim`, text after a closing quote is an error.
    return parseText(line, { ...LENIENT, ltrim: true })[0]!
  } catch {
    // A quote at the start of a value is not closed.
    return parseText(line, { ...LENIENT, quote: false })[0]!
  }
}

function checkHeader(file: string, header: readonly string[], required: readonly string[]): void {
  const missing = required.filter(column => !header.includes(column))
  if (missing.length > 0) {
    throw new InputError(
      `${file} lacks ${missing.length === 1 ? 'the column' : 'the columns'} ${missing.join(', ')}`,
    )
  }
  const twice = header.find((column, index) => header.indexOf(column) < index)
  if (twice !== undefined) throw new InputError(`${file} has the column ${twice} twice`)
}

function asInputError(file: string, error: unknown): unknown {
  if (error instanceof InputError) return error
  return new InputError(`can't read ${file}: ${error instanceof Error ? error.message : 'unknown reason'}`, {
    cause: error,
  })
}
