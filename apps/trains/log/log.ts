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
  #second = 0
  #secondText = ''

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
    const parts = [`"time":"${this.#time()}","level":"${level}","event":${JSON.stringify(event)}`]
    const own = JSON.stringify(fields).slice(1, -1)
    if (own !== '') parts.push(own)
    if (this.#rest !== '') parts.push(this.#rest)
    this.#sink.write(`{${parts.join()}}\n`)
  }

  /** Returns the time in UTC with milliseconds. Formats the date once a second, because that is most of the work. */
  #time(): string {
    const now = Date.now()
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -4)
    }
    return `${this.#secondText}${String(now - second * 1000).padStart(3, '0')}Z`
  }
}
