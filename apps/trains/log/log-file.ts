import { closeSync, openSync, writeSync } from 'node:fs'
import { InputError } from '../input/source.js'
import { reasonOf } from '../reason.js'
import type { LineSink } from './log.js'

/** Number of buffered characters at which the buffer is written. */
const FLUSH_SIZE = 64 * 1024

/** Maximum time until a line is written, in milliseconds. A killed process loses its log of this time. */
const FLUSH_INTERVAL = 100

/**
 * Appends lines to a file, many at a time. Several processes may append to the same file: the lines of one write stay
 * together.
 */
export class LogFile implements LineSink {
  readonly #file: number
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  private constructor(file: number) {
    this.#file = file
  }

  /** Opens the file, or creates it. @throws InputError if that fails. */
  static open(path: string): LogFile {
    try {
      return new LogFile(openSync(path, 'a'))
    } catch (error) {
      throw new InputError(`can't write the log: ${reasonOf(error)}`, { cause: error })
    }
  }

  write(line: string): void {
    this.#lines += line
    if (this.#lines.length >= FLUSH_SIZE) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_INTERVAL).unref()
  }

  /** Writes the buffer. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = Buffer.from(this.#lines)
    this.#lines = ''
    for (let written = 0; written < lines.length;) written += writeSync(this.#file, lines, written)
  }

  /** Writes the buffer and closes the file. */
  close(): void {
    this.flush()
    closeSync(this.#file)
  }
}
