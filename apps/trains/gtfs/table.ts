import { pipeline, Readable } from 'node:stream'
import { parse, type CsvError } from 'csv-parse'
import { readLines } from '../input/lines.js'
import { InputError, type OnRejection } from '../input/source.js'
import type { FeedFiles } from './feed-files.js'

/** A line of a table: its number in the file and its values by column. */
export interface Row {
  readonly line: number
  /** The value; empty when the line leaves it out or the file lacks the column. */
  value(column: string): string
}

/**
 * Reads a table of the feed line by line. Columns may stand in any order, further ones are passed over, and blanks
 * around names and values are dropped. A line that is not well-formed is rejected, and the rest goes on.
 * @throws InputError when the file or a required column is missing.
 */
export async function* readTable(
  files: FeedFiles,
  file: string,
  required: readonly string[],
  onRejection: OnRejection,
): AsyncGenerator<Row> {
  const bytes = await files.open(file)
  let headerRead = false
  const parser = parse({
    columns: (header: string[]) => {
      headerRead = true
      checkHeader(file, header, required)
      return header
    },
    info: true,
    trim: true,
    record_delimiter: '\n',
    skip_empty_lines: true,
    skip_records_with_error: true,
    on_skip: error => {
      if (error)
        onRejection({ file, line: lineOf(error), reason: error.message.replace(/ (on|at) line \d+/, '') })
      return undefined
    },
  })
  const problems: unknown[] = []
  pipeline(Readable.from(wellFormedLines(bytes, file, onRejection)), parser, error => {
    if (error) problems.push(error)
  })
  try {
    for await (const parsed of parser) {
      const { record, info } = parsed as ParsedRecord
      yield { line: info.lines, value: column => record[column] ?? '' }
    }
  } catch (error) {
    throw asInputError(file, problems[0] ?? error)
  }
  if (!headerRead) throw new InputError(`${file} is empty: its first line must name the columns`)
}

interface ParsedRecord {
  readonly record: Readonly<Record<string, string>>
  readonly info: { readonly lines: number }
}

/**
 * Hands on the lines whose quotes are closed, and an empty line for each other, so that line numbers stay. The
 * GTFS reference allows no line ends inside values; without this, one open quote would swallow the lines after it.
 */
async function* wellFormedLines(
  bytes: Readable,
  file: string,
  onRejection: OnRejection,
): AsyncGenerator<string> {
  for await (const lines of readLines(bytes as AsyncIterable<Uint8Array>)) {
    let text = ''
    for (const line of lines) {
      const reason = line.refused ?? (hasOpenQuote(line.text) ? 'has a quote that is not closed' : undefined)
      if (reason === undefined) {
        text += line.text.trim() === '' ? '\n' : `${line.text}\n`
        continue
      }
      if (line.number === 1) throw new InputError(`${file}, line 1: the line ${reason}`)
      onRejection({ file, line: line.number, reason: `the line ${reason}` })
      text += '\n'
    }
    yield text
  }
}

function hasOpenQuote(text: string): boolean {
  let open = false
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) open = !open
  return open
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

function lineOf(error: CsvError): number {
  return typeof error['lines'] === 'number' ? error['lines'] : 0
}

function asInputError(file: string, error: unknown): unknown {
  if (error instanceof InputError) return error
  return new InputError(`can't read ${file}: ${error instanceof Error ? error.message : 'unknown reason'}`, {
    cause: error,
  })
}
