import { openSync, writeSync } from 'node:fs'
import { InputError } from '../input/source.js'
import { reasonOf } from '../reason.js'

/** Log levels; each includes those before it. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Further fields of an event. Undefined ones are omitted. */
export type LogFields = Readonly<Record<string, unknown>>

/** Receives finished lines, each with its line feed. */
export interface LineSink {
  write(line: string): void
}

/** A structured log. Each event is a line of JSON with the time, the level, the event and its fields. */
export class Log {
  readonly #sink: LineSink
  readonly #level: number
  readonly #rest: string

  /** @param common fields of every line, such as the worker's number. */
  constructor(sink: LineSink, level: LogLevel, common: LogFields = {}) {
    this.#sink = sink
    this.#level = LOG_LEVELS.indexOf(level)
    this.#rest = JSON.stringify(common).slice(1, -1)
  }

  /** Whether lines of this level are written. Callers with expensive fields check this first. */
  writes(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) <= this.#level
  }

  error(event: string, fields?: LogFields): void {
    this.#line('error', event, fields)
  }

  warn(event: string, fields?: LogFields): void {
    this.#line('warn', event, fields)
  }

  info(event: string, fields?: LogFields): void {
    this.#line('info', event, fields)
  }

  debug(event: string, fields?: LogFields): void {
    this.#line('debug', event, fields)
  }

  #line(level: LogLevel, event: string, fields: LogFields = {}): void {
    if (!this.writes(level)) return
    const parts = [`"time":"${new Date().toISOString()}","level":"${level}","event":${JSON.stringify(event)}`]
    const own = JSON.stringify(fields).slice(1, -1)
    if (own !== '') parts.push(own)
    if (this.#rest !== '') parts.push(this.#rest)
    this.#sink.write(`{${parts.join()}}\n`)
  }
}

/**
 * Opens a file, or creates it, and appends each line. Several processes may append to the same file.
 * @throws InputError if that fails.
 */
export function logFile(path: string): LineSink {
  try {
    const file = openSync(path, 'a')
    return { write: line => void writeSync(file, line) }
  } catch (error) {
    throw new InputError(`can't write the log: ${reasonOf(error)}`, { cause: error })
  }
}
